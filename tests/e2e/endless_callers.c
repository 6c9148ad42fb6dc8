/* LD_PRELOAD library for berthd, an endless stream of callers: while the file $CALLERS_WHILE
 * exists, each accept without a real client returns a client that has already disconnected. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int
accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    int (*real)(int, struct sockaddr *, socklen_t *, int);
    const char *file = getenv("CALLERS_WHILE");
    int pair[2];
    *(void **)&real = dlsym(RTLD_NEXT, "accept4");
    int found = real(fd, addr, len, flags), why = errno;
    if (found >= 0 || !file || access(file, F_OK) < 0) {
        errno = why;
        return found;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | flags, 0, pair) < 0)
        return -1;
    close(pair[1]);
    return pair[0];
}
