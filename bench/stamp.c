/* The job that the benchmarks run: its first instruction in main reads the clock, and the
 * reading is appended to FILE, so that no shell's start-up distorts it. With HOLD_MS it then
 * sleeps so long and reads the clock once more as its last act.
 *
 *   stamp FILE [HOLD_MS]
 *
 * One line per job, "START END\n" in nanoseconds of CLOCK_MONOTONIC, written with one write
 * to a file opened for appending: lines of jobs that run at once never mix. Linked
 * statically: no loader in the way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int
main(int argc, char **argv)
{
    long long start = now_ns();

    if (argc < 2)
        return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return 1;
    if (argc > 2) {
        long ms = strtol(argv[2], NULL, 10);
        struct timespec hold = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&hold, NULL);
    }
    char line[64];
    int n = snprintf(line, sizeof line, "%lld %lld\n", start, now_ns());
    return write(fd, line, (size_t)n) == n ? 0 : 1;
}
