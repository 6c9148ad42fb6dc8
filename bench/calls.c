/* Calls a command many times, one after the other, and prints when each call began and
 * returned: "BEGIN END\n" in nanoseconds of CLOCK_MONOTONIC. BEGIN is read before the
 * process is made, END after it was waited for: the time a calling script would see.
 *
 *   calls COUNT GAP_MS COMMAND [ARG...]
 *
 * Between two calls it waits GAP_MS, so that what a call set going is over before the next.
 * Exits 1 as soon as a call does not exit 0. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
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
    extern char **environ;

    if (argc < 4)
        return 2;
    long count = strtol(argv[1], NULL, 10);
    long gap_ms = strtol(argv[2], NULL, 10);
    struct timespec gap = {gap_ms / 1000, gap_ms % 1000 * 1000000};

    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (long i = 0; i < count; i++) {
        pid_t pid;
        int status;
        long long begin = now_ns();
        if (posix_spawnp(&pid, argv[3], &quiet, NULL, argv + 3, environ) != 0) {
            perror(argv[3]);
            return 1;
        }
        if (waitpid(pid, &status, 0) != pid || status != 0) {
            fprintf(stderr, "calls: call %ld of %s failed, wait status %d\n", i + 1, argv[3],
                    status);
            return 1;
        }
        printf("%lld %lld\n", begin, now_ns());
        if (gap_ms > 0)
            nanosleep(&gap, NULL);
    }
    return 0;
}
