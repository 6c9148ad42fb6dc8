/* A wall clock that somebody sets, for programs that this is preloaded into: it goes by so many
 * seconds more, or less, as stand in the file $CLOCK_SHIFT. Other clocks are as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t id, struct timespec *out)
{
    const char *path = getenv("CLOCK_SHIFT");
    char text[32] = "";
    int rc = (int)syscall(SYS_clock_gettime, id, out);
    int fd = id == CLOCK_REALTIME && path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return rc;
    if (read(fd, text, sizeof text - 1) > 0)
        out->tv_sec += atoll(text);
    close(fd);
    return rc;
}
