/* The listening socket: see web_listener.h. */
#include "web/web_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "web/web_options.h"

#define BACKLOG 128

static void
write_address(const struct sockaddr_storage *a, char *out, size_t size)
{
    char name[INET6_ADDRSTRLEN] = "";

    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a;
        inet_ntop(AF_INET, &in->sin_addr, name, sizeof name);
        snprintf(out, size, "http://%s:%u/", name, ntohs(in->sin_port));
    } else {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
        inet_ntop(AF_INET6, &in6->sin6_addr, name, sizeof name);
        snprintf(out, size, "http://[%s]:%u/", name, ntohs(in6->sin6_port));
    }
}

static int
open_tcp(const struct options *o, char *address, size_t size, struct err *e)
{
    struct sockaddr_storage bound = o->address;
    socklen_t n = sizeof bound;
    int on = 1;
    auto_close int fd =
        socket(o->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    write_address(&o->address, address, size);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket for %s", address);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&o->address, o->address_len) < 0) {
        if (errno == EADDRINUSE)
            return err_set(e, ERR_FAILED,
                           "%s is in use; --listen 127.0.0.1:0 uses any free port", address);
        return err_errno(e, ERR_FAILED, errno, "cannot listen at %s", address);
    }
    if (listen(fd, BACKLOG) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot listen at %s", address);
    if (getsockname(fd, (struct sockaddr *)&bound, &n) == 0)
        write_address(&bound, address, size);
    return TAKE_FD(fd);
}

/* Removes the socket of a server that died; refuses if one is still listening. */
static int
clear_way(const struct sockaddr_un *addr, struct err *e)
{
    struct stat st;
    auto_close int probe = -1;

    if (lstat(addr->sun_path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_USAGE,
                       "--listen unix:%s: a file that is not a socket is in the way",
                       addr->sun_path);
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(probe, (const struct sockaddr *)addr, sizeof *addr) == 0 || errno == EAGAIN)
        return err_set(e, ERR_FAILED, "unix:%s is in use by another server", addr->sun_path);
    unlink(addr->sun_path);
    return 0;
}

static int
open_unix(const struct options *o, char *address, size_t size, struct err *e)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t old;
    int rc;

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket");
    if (strlen(o->unix_path) >= sizeof addr.sun_path)
        return err_set(e, ERR_USAGE, "--listen unix:PATH: at most %zu bytes",
                       sizeof addr.sun_path - 1);
    memcpy(addr.sun_path, o->unix_path, strlen(o->unix_path) + 1);
    if (clear_way(&addr, e) < 0)
        return -1;
    old = umask(0117); /* access to the file is access to the page: for owner and group */
    rc = bind(fd, (struct sockaddr *)&addr, sizeof addr);
    umask(old);
    if (rc < 0 || listen(fd, BACKLOG) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot listen at unix:%s", o->unix_path);
    snprintf(address, size, "unix:%s", o->unix_path);
    return TAKE_FD(fd);
}

int
web_listener_open(const struct options *o, char *address, size_t size, struct err *e)
{
    return o->unix_path ? open_unix(o, address, size, e) : open_tcp(o, address, size, e);
}
