/* berth-shepherd, the supervisor: one process beside each running job. It outlives the daemon,
 * so that a job's time limit is enforced, its end is noticed and its outcome is recorded,
 * whichever process dies. The daemon starts one with --nursery, which forks all others; each
 * has descriptor 3 a connection, 4 the attempt's locked file, 5 the attempt's folder
 * (docs/protocol.md, section 4). It is not meant to be run by hand. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/libc.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/sweep.h"
#include "shepherd/begin/window.h"
#include "shepherd/nursery/nursery_main.h"
#include "shepherd/slurm/allocation.h"
#include "shepherd/slurm/stand_in.h"
#include "sys/signals.h"

/* The job must not inherit anything above standard error. */
static void
keep_descriptors_from_the_job(void)
{
    libc_cloexec_from(FD_CTL);
}

static int
usage(void)
{
    fprintf(stderr, "berth-shepherd is started by berthd, not by hand.\n");
    return 2;
}

int
main(int argc, char **argv)
{
    bool sweep = argc == 2 && strcmp(argv[1], "--sweep") == 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("berth-shepherd %s\n", BERTH_VERSION);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], WINDOW_OPTION) == 0)
        return window_run(argv[2]);
    signals_default(); /* an inherited SIG_IGN would lose an exit status, or reach the job */
    if (argc >= 2 && argc <= 4 && strcmp(argv[1], "--nursery") == 0) {
        keep_descriptors_from_the_job();
        if (argc < 4 && fcntl(FD_CTL, F_GETFD) < 0)
            return usage();
        return nursery_run(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    }
    if (argc == 3 && strcmp(argv[1], SLURM_OPTION) == 0)
        return slurm_run(argv[2]);
    if (argc == 3 && strcmp(argv[1], ALLOCATION_OPTION) == 0)
        return allocation_run(argv[2]);
    if (argc > 1 && !sweep)
        return usage();
    if (fcntl(FD_FOLDER, F_GETFD) < 0 || fcntl(FD_LOCK, F_GETFD) < 0)
        return usage();
    keep_descriptors_from_the_job();
    (void)setsid(); /* once for the nursery; supervisors need no session of their own */
    return sweep ? sweep_run() : attempt_run(false, NULL);
}
