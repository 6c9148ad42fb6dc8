/* Locks on GPUs: see card_locks.h. The files are in /run/lock (BERTH_LOCK_DIR moves them) and
 * belong to the user who created them first; as flock needs no write permission, any user's
 * daemon can take a free one. The text inside is for people.
 *
 * Any user can create files in that folder. So the system daemon relies on a lock in a folder
 * of root's (/run/berth/gpus); it also takes the one in /run/lock if it can, so that users'
 * daemons see that the GPU is in use. */
#include "daemon/gpu/card_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/machine_cards.h"
#include "wire/places.h"

struct gpulock {
    struct gpulock *next;
    int fd, shared_fd; /* shared_fd -1: none */
    char uuid[80];
};

/* The locks of simulated GPUs are in the simulation's folder, because they are created and
 * deleted by the hundred. */
static const char *
lock_dir(const struct cards *cards)
{
    const char *sim = cards->facts->sim_dir;
    return sim ? sim : places_lock_dir();
}

/* With NVIDIA drivers before 470, a MIG instance's UUID contains slashes. */
static char *
lock_path(const char *dir, const char *uuid)
{
    char *path = xasprintf("%s/berth-gpu-%s", dir, uuid);
    for (char *s = path + strlen(dir) + 1; *s; s++)
        if (*s == '/')
            *s = '_';
    return path;
}

/* Opens an existing file without O_CREAT, because in a sticky folder the kernel refuses that
 * for another user's file (fs.protected_regular). */
static int
open_lock(const char *path, mode_t mode, struct err *e)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == EACCES) /* O_NONBLOCK: it may be a user's pipe */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd >= 0)
            (void)fchmod(fd, mode);
    }
    if (fd < 0 && errno == EACCES)
        return err_set(e, ERR_REFUSED,
                       "this GPU belongs to the system daemon (%s is owned by root); start it "
                       "with 'systemctl start berthd', and submit without --dir",
                       path);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the GPU's lock %s", path);
    return fd;
}

static int
say_who(int fd, const char *path, struct err *e)
{
    char who[256];
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    struct stat st;
    bool is_anothers = fstat(fd, &st) == 0 && st.st_uid != geteuid();

    who[n > 0 ? n : 0] = '\0';
    who[strcspn(who, "\n")] = '\0';
    return err_set(e, ERR_REFUSED, "another daemon has this GPU: %s (%s)%s",
                   who[0] ? who : "its lock names none", path,
                   is_anothers
                       ? "; to share GPUs among users, run one daemon as root: berthd --system"
                       : "");
}

/* Creates the folder if needed; only root can write to it. -1 with e if other users could. */
static int
open_own_dir(const struct cards *cards, char **path, struct err *e)
{
    const char *sim = cards->facts->sim_dir, *dir = getenv("BERTH_LOCK_DIR");
    struct stat st;
    if (sim || (dir && dir[0]))
        *path = xasprintf("%s/root", sim ? sim : dir);
    else
        *path = xstrdup("/run/berth/gpus");
    mode_t before = umask(022);
    int made = file_mkdirs(*path, 0700, e);
    umask(before);
    if (made)
        return -1;
    if (lstat(*path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, ERR_FAILED,
                       "%s has the GPUs' locks, but users other than root can write to it",
                       *path);
    return 0;
}

/* True for a file that only root can have created here, not a hard link to a file of root's
 * elsewhere. */
static bool
is_roots_own(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == 0 && !(st->st_mode & 077) && st->st_nlink == 1;
}

/* The system daemon takes precedence over users' daemons: a lock file that is not root's, or
 * that others could replace, is removed in favour of a new file that only root can open. The
 * daemon that held the old one notices when it next checks its GPU; until then its jobs count
 * as other processes. */
static void
clear_the_way(const struct instance *inst, const char *path)
{
    struct stat st;
    if (!inst->places.system || lstat(path, &st) < 0 || is_roots_own(&st))
        return;
    if (unlink(path) == 0 && st.st_uid != 0)
        log_warn("event=gpu-lock-taken-over path=%s it belonged to user %u", path, st.st_uid);
}

/* Opens and locks path and writes our name into it; -1 with e naming the holder. */
static int
take_file(struct instance *inst, const char *path, struct err *e)
{
    struct stat st;
    auto_close int fd = open_lock(path, inst->places.system ? 0600 : 0644, e);
    if (fd < 0)
        return -1;
    if (inst->places.system && (fstat(fd, &st) < 0 || !is_roots_own(&st)))
        return err_set(e, ERR_FAILED, "the GPU's lock %s belongs to another user; remove it",
                       path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? say_who(fd, path, e)
                                    : err_errno(e, ERR_FAILED, errno, "cannot lock %s", path);
    auto_free char *who = xasprintf("%s uid %u pid %d state %s\n", daemon_user_name(getuid()),
                                    getuid(), getpid(), inst->places.state);
    if (ftruncate(fd, 0) == 0)
        (void)file_write_all(fd, who, strlen(who));
    return TAKE_FD(fd);
}

static void
keep(struct cards *cards, const char *uuid, int fd, int shared_fd)
{
    struct gpulock *l = xcalloc(1, sizeof *l);
    l->fd = fd;
    l->shared_fd = shared_fd;
    snprintf(l->uuid, sizeof l->uuid, "%s", uuid);
    l->next = cards->locks;
    cards->locks = l;
}

/* A problem with the lock in the public folder is only logged. */
static int
take_for_machine(struct cards *cards, const char *uuid, const char *shared, struct err *e)
{
    auto_free char *dir = NULL;
    struct err why = {0};
    if (open_own_dir(cards, &dir, e) < 0)
        return -1;
    auto_free char *path = lock_path(dir, uuid);
    int fd = take_file(cards->inst, path, e);
    if (fd < 0)
        return -1;
    clear_the_way(cards->inst, shared);
    int shared_fd = take_file(cards->inst, shared, &why);
    if (shared_fd < 0)
        log_warn("event=gpu-lock-blocked path=%s this daemon uses the GPU anyway: %s", shared,
                 why.text);
    keep(cards, uuid, fd, shared_fd);
    return 0;
}

int
gpulock_take(struct cards *cards, const char *uuid, struct err *e)
{
    for (const struct gpulock *l = cards->locks; l; l = l->next)
        if (strcmp(l->uuid, uuid) == 0)
            return 0;
    auto_free char *path = lock_path(lock_dir(cards), uuid);
    if (cards->inst->places.system)
        return take_for_machine(cards, uuid, path, e);
    int fd = take_file(cards->inst, path, e);
    if (fd < 0)
        return -1;
    keep(cards, uuid, fd, -1);
    return 0;
}

void
gpulock_free_all(struct cards *cards)
{
    struct gpulock *l, *next;
    for (l = cards->locks; l; l = next) {
        next = l->next;
        close(l->fd);
        if (l->shared_fd >= 0)
            close(l->shared_fd);
        free(l);
    }
    cards->locks = NULL;
}
