/* A wall clock that somebody sets, for programs that this is preloaded into: it goes by so many
 * seconds more, or less, as stand in the file $CLOCK_SHIFT. A second number there is the same
 * for the time since the boot. Other clocks are as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t id, struct timespec *out)
{
    const char *path = getenv("CLOCK_SHIFT");
    char text[64] = "";
    int rc = (int)syscall(SYS_clock_gettime, id, out);
    bool is_shifted = id == CLOCK_REALTIME || id == CLOCK_BOOTTIME;
    int fd = is_shifted && path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char *rest = text;
    if (fd < 0)
        return rc;
    if (read(fd, text, sizeof text - 1) > 0) {
        long long wall_s = strtoll(text, &rest, 10), boot_s = strtoll(rest, NULL, 10);
        out->tv_sec += id == CLOCK_REALTIME ? wall_s : boot_s;
    }
    close(fd);
    return rc;
}
