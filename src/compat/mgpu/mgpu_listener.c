/* Maintains the server's socket; see mgpu.h. Cleaners of /tmp remove old files, and clients
 * look only at this name: inotify reports its removal and it is created again. A name at which
 * a server answers is not taken over, except by root from another user. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "compat/mgpu/mgpu.h"

#define BACKLOG 4096 /* the kernel clamps it */

/* The user of the server that answers there; -1: none. */
static int64_t
listener_of(const struct sockaddr_un *a)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred cred;
    socklen_t size = sizeof cred;

    if (fd < 0 || (connect(fd, (const struct sockaddr *)a, sizeof *a) < 0 && errno != EAGAIN))
        return -1;
    /* If a server's backlog is full, the kernel does not tell its user. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 || cred.uid == (uid_t)-1)
        return 0;
    return cred.uid;
}

/* A name that no server uses may be taken. Root also takes one where another user created a
 * socket first. */
static int
check_name(const struct sockaddr_un *a, struct err *e)
{
    int64_t uid = listener_of(a);
    struct stat st;

    if (lstat(a->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(e, ERR_REFUSED, "%s is there and is no socket; move it away",
                       a->sun_path);
    if (uid < 0 || (geteuid() == 0 && uid != 0))
        return 0;
    return err_set(e, ERR_REFUSED,
                   "a server of user %lld listens at %s already; MGPU_SCHEDULER_SOCKET names "
                   "another place",
                   (long long)uid, a->sun_path);
}

/* Root's socket is for all users. Set the mode by umask: in other users' folders a chmod could
 * hit another file. */
static int
bind_for_all_or_own(int fd, const struct sockaddr_un *a)
{
    mode_t old = umask(geteuid() == 0 ? 0111 : 0177);
    int rc;

    (void)unlink(a->sun_path);
    rc = bind(fd, (const struct sockaddr *)a, sizeof *a);
    umask(old);
    return rc;
}

/* Watch it under its temporary name, so that no event is missed. */
static int
watch_socket(const char *name)
{
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (watch >= 0 &&
        inotify_add_watch(watch, name, IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) < 0)
        close(TAKE_FD(watch));
    return watch;
}

static void
close_both(struct mgpu_listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->watch >= 0)
        close(l->watch);
    l->fd = l->watch = -1;
}

/* Create it under a temporary name, so that no client sees it before it listens. */
int
mgpu_listener_open(struct mgpu_listener *l, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX}, temp = a;
    auto_free char *name = xasprintf("%s.%d", l->path, (int)getpid());
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    auto_close int watch = -1;
    struct stat st;

    if (strlen(name) >= sizeof a.sun_path)
        return err_set(e, ERR_USAGE, "the socket's name is too long: %s", l->path);
    memcpy(a.sun_path, l->path, strlen(l->path));
    memcpy(temp.sun_path, name, strlen(name));
    if (check_name(&a, e) < 0)
        return -1;
    if (fd < 0 || bind_for_all_or_own(fd, &temp) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket at %s", l->path);
    watch = watch_socket(name);
    if (listen(fd, BACKLOG) < 0 || lstat(name, &st) < 0 || rename(name, l->path) < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot listen at %s", l->path);
        (void)unlink(name);
        return -1;
    }
    close_both(l);
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    l->fd = TAKE_FD(fd);
    l->watch = TAKE_FD(watch);
    return 0;
}

static bool
has_name(const struct mgpu_listener *l)
{
    struct stat st;

    return lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

int
mgpu_listener_keep(struct mgpu_listener *l, struct err *e)
{
    char events[4096];

    while (read(l->watch, events, sizeof events) > 0)
        continue;
    return has_name(l) ? 0 : mgpu_listener_open(l, e);
}

void
mgpu_listener_close(struct mgpu_listener *l)
{
    if (has_name(l))
        (void)unlink(l->path);
    close_both(l);
}
