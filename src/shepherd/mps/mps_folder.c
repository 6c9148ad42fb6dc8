/* See mps_folder.h. Called by mps_control.c. Files in /run take memory from everyone, so root
 * mounts a small file system for the user there; the folder below the mount stays root's.
 *
 * Nothing below the folder is trusted: the user may have mounted another file system on it
 * (fusermount) that never answers. So the folder is opened with O_PATH only, and /proc says
 * what is mounted there. */
#include "shepherd/mps/mps_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define SOURCE    "berth-mps" /* identifies our mounts */
#define OPTIONS   "size=16m,nr_inodes=1024,mode=0700"
#define DEPTH_MAX 16 /* of folders an earlier version let the user make; deeper ones stay */
#define COVERS    16 /* stacked mounts that are removed */

enum cover { COVER_NONE, COVER_OURS, COVER_OTHER };

/* --- what is mounted there --- */

/* -1: not known. */
static int
mount_of(int fd)
{
    char name[40], line[256];
    int id = -1;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    auto_fclose FILE *f = fopen(name, "re");
    while (f && id < 0 && fgets(line, sizeof line, f))
        (void)sscanf(line, "mnt_id: %d", &id);
    return id;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS" */
static bool
is_our_mount(int id)
{
    auto_fclose FILE *f = fopen("/proc/self/mountinfo", "re");
    auto_free char *line = NULL;
    size_t size = 0;
    bool ours = false;
    while (f && getline(&line, &size, f) > 0) {
        int this = -1;
        const char *type = strstr(line, " - ");
        if (type && sscanf(line, "%d", &this) == 1 && this == id)
            ours = strncmp(type, " - tmpfs " SOURCE " ", strlen(" - tmpfs " SOURCE " ")) == 0;
    }
    return ours;
}

static enum cover
cover_of(int parent_fd, int fd)
{
    int id = mount_of(fd);
    if (id < 0 || id == mount_of(parent_fd))
        return COVER_NONE;
    return is_our_mount(id) ? COVER_OURS : COVER_OTHER;
}

/* --- making it --- */

/* Removes the user's files. Deeper folders are not searched. */
static void
empty(int fd, int depth)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *one;
    if (!dir && copy >= 0)
        close(copy);
    while (dir && (one = readdir(dir))) {
        if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0 ||
            unlinkat(fd, one->d_name, 0) == 0 || depth == DEPTH_MAX)
            continue;
        auto_close int sub =
            openat(fd, one->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0)
            empty(sub, depth + 1);
        (void)unlinkat(fd, one->d_name, AT_REMOVEDIR);
    }
}

/* The folder below the mount may have been the user's: from an earlier version, or because
 * nothing could be mounted. */
static int
take_back(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (st.st_uid == geteuid())
        return 0;
    if (fchown(fd, geteuid(), getegid()) < 0 || fchmod(fd, 0700) < 0)
        return -1;
    empty(fd, 0);
    return 0;
}

static int
mount_on(int fd, const struct identity *owner)
{
    char target[40], options[96];
    snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
    snprintf(options, sizeof options, OPTIONS ",uid=%u,gid=%u", owner->uid, owner->gid);
    return mount(SOURCE, target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options);
}

/* Opens the folder with O_PATH, after removing mounts that are not ours; *is_mounted: ours is
 * mounted. -1 with errno. */
static int
open_uncovered(int parent_fd, const char *name, bool *is_mounted)
{
    for (int i = 0; i < COVERS; i++) {
        char target[40];
        auto_close int fd =
            openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        enum cover cover = fd < 0 ? COVER_NONE : cover_of(parent_fd, fd);
        *is_mounted = cover == COVER_OURS;
        if (cover != COVER_OTHER)
            return TAKE_FD(fd);
        snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
        if (umount2(target, MNT_DETACH) < 0)
            return -1;
    }
    errno = EBUSY;
    return -1;
}

static int
make_for(int parent_fd, const char *name, const struct identity *owner)
{
    bool is_mounted;
    auto_close int fd = open_uncovered(parent_fd, name, &is_mounted);
    if (fd < 0 || is_mounted)
        return fd < 0 ? -1 : 0;
    auto_close int beneath =
        openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (beneath < 0)
        return -1;
    if (mount_on(fd, owner) == 0)
        return take_back(beneath);
    return fchownat(parent_fd, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW);
}

int
mps_folder_make(int parent_fd, const char *name, const struct identity *owner, struct err *e)
{
    if ((mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST) ||
        (owner && make_for(parent_fd, name, owner) < 0))
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s", name);
    return 0;
}

void
mps_folder_end(int parent_fd, const char *name, const char *path)
{
    auto_close int fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || cover_of(parent_fd, fd) != COVER_OURS)
        return;
    close(TAKE_FD(fd)); /* it would keep the mount busy */
    (void)umount2(path, UMOUNT_NOFOLLOW);
}
