/* The clocks and the boot id. Called by programs, never by core or spec, which take times as
 * arguments. Times are whole microseconds in 64 bits, so they never wrap. */
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define RFC3339_SIZE 32

static int64_t
clock_read_us(clockid_t id)
{
    struct timespec t = {0};

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t
clock_boot_us(void)
{
    return clock_read_us(CLOCK_BOOTTIME);
}

int64_t
clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

int64_t
clock_thread_us(void)
{
    return clock_read_us(CLOCK_THREAD_CPUTIME_ID);
}

const char *
clock_boot_id(void)
{
    static char id[37];

    if (id[0])
        return id;
    auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, id, sizeof id - 1) : -1;
    if (n != (ssize_t)sizeof id - 1)
        snprintf(id, sizeof id, "unknown");
    return id;
}

char *
clock_rfc3339(int64_t wall_us, char *out)
{
    int64_t whole = wall_us / 1000000;
    struct tm tm;

    if (wall_us % 1000000 < 0)
        whole--;
    time_t seconds = (time_t)whole;
    if (!gmtime_r(&seconds, &tm) || !strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(out, RFC3339_SIZE, "n/a");
    return out;
}
