/* What `berth doctor` asks about Slurm: whether its programs are here, and whether slurmctld
 * answers. Neither is a fault where no job is to go there. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/doctor/doctor_verb.h"
#include "sys/slurm_find.h"
#include "sys/spawn.h"

#define PATIENCE_MS 10000
#define ANSWER_MAX  4000
#define PIECE_BYTES 512

/* What the program prints within the patience, both streams; -1: it cannot be started. */
static int
run_for(char *const *argv, struct buf *out)
{
    int pair[2], errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    struct spawn s = SPAWN_INIT;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -1;
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    auto_close int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s.argv = argv;
    s.envp = environ;
    s.fds[0] = nothing;
    s.fds[1] = s.fds[2] = theirs;
    s.n_fds = 3;
    s.death_signal = SIGKILL;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid < 0)
        return -1;
    close(TAKE_FD(theirs));
    int64_t end_us = clock_boot_us() + PATIENCE_MS * INT64_C(1000);
    for (ssize_t n = 1; n > 0 && out->len < ANSWER_MAX;) {
        int64_t left_ms = (end_us - clock_boot_us()) / 1000;
        if (left_ms <= 0 || !file_await(ours, (int)left_ms))
            break;
        char piece[PIECE_BYTES];
        n = read(ours, piece, sizeof piece);
        buf_add(out, piece, n > 0 ? (size_t)n : 0);
    }
    (void)kill(pid, SIGKILL); /* ours until it is waited for */
    (void)waitpid(pid, NULL, 0);
    return 0;
}

enum doctor_verdict
doctor_ask_slurm(const char *folder, struct buf *words)
{
    struct err e;
    auto_free char *scontrol = slurm_find(folder, "scontrol", &e);
    auto_buf struct buf out = BUF_INIT;
    char ping[] = "ping";
    char *const argv[] = {scontrol, ping, NULL};

    if (!scontrol) {
        buf_adds(words, folder[0] ? e.text
                                  : "not found; --on slurm needs Slurm's sbatch, squeue and "
                                    "scancel");
        return folder[0] ? DOCTOR_FAIL : DOCTOR_OK;
    }
    if (run_for(argv, &out) == 0 && strstr(buf_str(&out), " UP")) {
        buf_addf(words, "slurmctld answers (%s), for --on slurm", scontrol);
        return DOCTOR_OK;
    }
    buf_addf(words, "'%s ping' finds no slurmctld%s%.*s; jobs with --on slurm wait for it",
             scontrol, out.len ? ": " : "", (int)strcspn(buf_str(&out), "\n"), buf_str(&out));
    return DOCTOR_WARN;
}
