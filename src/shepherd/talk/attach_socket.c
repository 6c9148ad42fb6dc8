/* The attach socket's name and permissions: see attach_socket.h. It is created before anything
 * of the job, as the supervisor's own user, in a folder that users can only traverse; then it
 * is given to the job's user. */
#include "shepherd/talk/attach_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/unixsock.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/attach_server.h"

static int
bind_at(int fd, int dir, const char *name)
{
    struct sockaddr_un addr;
    if (unixsock_at(dir, name, &addr) < 0)
        return -1;
    (void)unlinkat(dir, name, 0); /* a stale socket: attempt numbers are never reused */
    mode_t before = umask(0177);
    int rc = bind(fd, (struct sockaddr *)&addr, sizeof addr);
    umask(before);
    return rc;
}

/* Makes a removed folder again, as the daemon makes it. */
static int
open_folder(const struct spec *spec, char *path)
{
    mode_t before = umask(0);
    (void)mkdir(dirname(path), spec->uid >= 0 ? 0711 : 0700);
    umask(before);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The socket gets its final name once it belongs to the user and listens, so a client that
 * finds it can connect. */
int
attach_socket_listen(const struct spec *spec, struct attach_socket *out, struct err *e)
{
    struct stat st;
    auto_free char *for_dir = xstrdup(spec->attach);
    auto_free char *for_name = xstrdup(spec->attach);
    const char *last = basename(for_name);
    auto_free char *name = xasprintf("%s.new", last);
    auto_close int dir = open_folder(spec, for_dir);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dir < 0 || fd < 0 || bind_at(fd, dir, name) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the socket %s", spec->attach);
    if (spec->uid >= 0 &&
        fchownat(dir, name, (uid_t)spec->uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot hand over %s", spec->attach);
    if (listen(fd, ATTACH_PEERS_MAX) < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        renameat(dir, name, dir, last) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot listen on %s", spec->attach);
    out->fd = TAKE_FD(fd);
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    return 0;
}

int
attach_socket_watch(const struct spec *spec, int notify_fd)
{
    auto_free char *for_dir = xstrdup(spec->attach);
    return inotify_add_watch(notify_fd, dirname(for_dir),
                             IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                                 IN_MOVE_SELF | IN_ONLYDIR);
}

bool
attach_socket_is_there(const struct spec *spec, const struct attach_socket *s)
{
    struct stat st;
    return lstat(spec->attach, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

bool
attach_socket_admits(const struct spec *spec, int fd, uid_t *who)
{
    uid_t owner = spec->uid >= 0 ? (uid_t)spec->uid : geteuid();
    struct ucred cred;
    socklen_t size = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size))
        return false;
    *who = cred.uid;
    return cred.uid == 0 || cred.uid == owner;
}
