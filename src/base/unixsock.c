/* Addresses of UNIX sockets: see unixsock.h. Used by listeners (the daemon, a supervisor) and
 * by connecting programs (clients, the web server, a screen window). */
#include "base/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/err.h"

int
unixsock_at(int dir, const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", dir, name);
    if (n > 0 && (size_t)n < sizeof out->sun_path)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int
unixsock_connect(int fd, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    auto_close int dir = -1;
    size_t n = strlen(path);
    if (n < sizeof addr.sun_path) {
        memcpy(addr.sun_path, path, n);
    } else {
        auto_free char *for_dir = xstrdup(path);
        auto_free char *for_name = xstrdup(path);
        dir = open(dirname(for_dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || unixsock_at(dir, basename(for_name), &addr) < 0)
            return -1;
    }
    return connect(fd, (struct sockaddr *)&addr, sizeof addr);
}

bool
unixsock_is_answered(const char *path)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && (unixsock_connect(fd, path) == 0 || errno == EAGAIN);
}
