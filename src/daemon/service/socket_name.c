/* The daemon's socket as a name in a folder: see socket_name.h. Cleaners of /tmp and /run
 * remove names, and whole folders, that have not been touched for days. The kernel reports
 * changes in the folder; a slow timer catches what it does not report, such as a rename of a
 * parent folder. A name at which a daemon answers is never taken over, because two daemons
 * doing that would take turns forever. */
#include "daemon/service/socket_name.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/unixsock.h"
#include "daemon/common/instance.h"

#define BACKLOG       256
#define LOOK_MS       60000 /* while the kernel reports changes */
#define LOOK_BLIND_MS 5000  /* while it does not, or after a failed try */

struct listener {
    struct instance *inst;
    uv_connection_cb on_connection;
    void *data;
    uv_pipe_t *pipe;
    uv_pipe_t *before; /* has lost its name; may have pending connections */
    char *folder;
    const char *name, *folder_name; /* last components of the paths */
    uv_fs_event_t watch;
    uv_timer_t look;
    bool watching;
    bool told; /* the current trouble has been logged */
    dev_t dev; /* of the file made by bind */
    ino_t ino;
};

/* True if a process listens there. EAGAIN: it does, but its backlog is full. */
static bool
is_answered(int dir, const char *name)
{
    struct sockaddr_un addr;
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && unixsock_at(dir, name, &addr) == 0 &&
           (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0 || errno == EAGAIN);
}

static int
open_folder(const struct listener *l, struct err *e)
{
    bool for_all = l->inst->places.system;
    struct stat st;
    mode_t before = umask(for_all ? 022 : 077);
    int made = file_mkdirs(l->folder, for_all ? 0755 : 0700, e);
    umask(before);
    if (made)
        return -1;
    auto_close int dir = open(l->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", l->folder);
    if (fstat(dir, &st) == 0 && st.st_uid != getuid())
        return err_set(e, ERR_PERMISSION, "%s belongs to another user; remove it or use --dir",
                       l->folder);
    if (for_all && !(st.st_mode & (S_IXGRP | S_IXOTH)))
        log_warn(
            "only root can enter %s, so users cannot reach this daemon; run 'chmod 755 %s'",
            l->folder, l->folder);
    return TAKE_FD(dir);
}

/* Binds under a temporary name and renames, so that a socket always exists. */
static int
bind_socket(const struct listener *l, struct err *e)
{
    const char *path = l->inst->places.socket;
    struct sockaddr_un addr;
    auto_close int dir = open_folder(l, e);
    if (dir < 0)
        return -1;
    if (is_answered(dir, l->name))
        return err_set(e, ERR_REFUSED,
                       "another daemon is running at %s; stop it, or use --dir for this one",
                       path);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket");
    auto_free char *temp = xasprintf(".sock.%d", getpid());
    unlinkat(dir, temp, 0);
    mode_t old = umask(l->inst->places.system ? 0111 : 0177);
    bool bound = unixsock_at(dir, temp, &addr) == 0 &&
                 bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    umask(old);
    if (!bound)
        return err_errno(e, ERR_FAILED, errno, "cannot bind %s", path);
    /* Listen before the rename, so that every client that finds the name can connect. */
    if (listen(fd, BACKLOG) < 0 || renameat(dir, temp, dir, l->name) < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot put the socket at %s", path);
        unlinkat(dir, temp, 0);
        return -1;
    }
    return TAKE_FD(fd);
}

static void
on_pipe_closed(uv_handle_t *handle)
{
    free(handle);
}

static bool
is_in_place(const struct listener *l)
{
    struct stat st;
    return stat(l->inst->places.socket, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static void
close_pipe(uv_pipe_t *pipe)
{
    if (pipe)
        uv_close((uv_handle_t *)pipe, on_pipe_closed);
}

/* Binds, listens, and remembers the file's identity. */
static int
listen_anew(struct listener *l, struct err *e)
{
    const char *path = l->inst->places.socket;
    struct stat st;
    int fd = bind_socket(l, e);
    if (fd < 0)
        return -1;
    uv_pipe_t *pipe = xcalloc(1, sizeof *pipe);
    uv_pipe_init(l->inst->loop, pipe, 0);
    pipe->data = l->data;
    int rc = uv_pipe_open(pipe, fd);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)pipe, BACKLOG, l->on_connection);
    if (rc == 0 && stat(path, &st) < 0)
        rc = uv_translate_sys_error(errno);
    if (rc) {
        close_pipe(pipe);
        return err_set(e, ERR_FAILED, "cannot listen on %s: %s", path, uv_strerror(rc));
    }
    close_pipe(l->before);
    l->before = l->pipe;
    l->pipe = pipe;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    return 0;
}

static void look(struct listener *l);

/* Without a name, or with the folder's own, the event is about the folder itself. */
static void
on_folder(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct listener *l = handle->data;
    (void)events;
    (void)status;
    if (!name || strcmp(name, l->name) == 0 || strcmp(name, l->folder_name) == 0)
        look(l);
}

/* Restarted after each trouble, because a watch stays on the folder it was started on. */
static void
watch_folder(struct listener *l)
{
    uv_fs_event_stop(&l->watch);
    int rc = uv_fs_event_start(&l->watch, on_folder, l->folder, 0);
    l->watching = rc == 0;
    if (rc)
        log_info("event=socket-not-watched path=%s %s", l->folder, uv_strerror(rc));
}

static void
on_look(uv_timer_t *timer)
{
    look(timer->data);
}

static void
look_later(struct listener *l)
{
    uint64_t ms = l->watching && !l->told ? LOOK_MS : LOOK_BLIND_MS;
    uv_timer_start(&l->look, on_look, ms, 0);
}

static void
look(struct listener *l)
{
    struct err e = {0};
    if (is_in_place(l)) {
        l->told = false;
    } else if (listen_anew(l, &e) == 0) {
        log_warn("event=socket-bound-again path=%s", l->inst->places.socket);
        l->told = false;
        l->watching = false;
    } else {
        if (!l->told)
            log_error("event=socket-gone %s", e.text);
        l->told = true;
        l->watching = false;
    }
    if (!l->watching)
        watch_folder(l);
    look_later(l);
}

struct listener *
listener_open(struct instance *inst, uv_connection_cb on_connection, void *data, struct err *e)
{
    struct listener *l = xcalloc(1, sizeof *l);
    l->inst = inst;
    l->on_connection = on_connection;
    l->data = data;
    l->name = strrchr(inst->places.socket, '/') + 1;
    l->folder = xstrndup(inst->places.socket, (size_t)(l->name - 1 - inst->places.socket));
    const char *slash = strrchr(l->folder, '/');
    l->folder_name = slash ? slash + 1 : l->folder;
    if (listen_anew(l, e) < 0) {
        listener_free(l);
        return NULL;
    }
    uv_fs_event_init(inst->loop, &l->watch);
    uv_timer_init(inst->loop, &l->look);
    l->watch.data = l->look.data = l;
    watch_folder(l);
    look_later(l);
    return l;
}

void
listener_close(struct listener *l)
{
    if (is_in_place(l)) /* not if another process has replaced it */
        unlink(l->inst->places.socket);
    uv_close((uv_handle_t *)&l->watch, NULL);
    uv_close((uv_handle_t *)&l->look, NULL);
    close_pipe(l->before);
    close_pipe(TAKE(l->pipe));
}

void
listener_free(struct listener *l)
{
    free(l->folder);
    free(l);
}

void
listener_go_on(struct listener *l)
{
    if (l->before)
        l->on_connection((uv_stream_t *)l->before, 0);
    if (l->pipe)
        l->on_connection((uv_stream_t *)l->pipe, 0);
}

bool
listener_has_callers(const struct listener *l)
{
    uv_os_fd_t fd;
    if (!l->pipe || uv_fileno((const uv_handle_t *)l->pipe, &fd))
        return false;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}
