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
#include "base/fs_kind.h"
#include "cli/ask/answer.h"
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

/* Where that is to be, or is: the nearest folder that is there. */
static const char *
kind_of(const char *path)
{
    const char *kind;
    (void)fs_kind_of(path, &kind);
    return kind;
}

void
doctor_check_slurm_folder(struct doctor *d)
{
    const char *folder = answer_str(d->daemon, "slurm_folder");
    const char *next = answer_str(d->daemon, "slurm_folder_next");
    const char *trouble = answer_str(d->daemon, "slurm_trouble");
    const char *state = answer_str(d->daemon, "state_dir");
    bool is_to_change = json_is_string(json_object_get(d->daemon, "slurm_folder_next"));
    struct err e;
    auto_free char *sbatch = slurm_find(answer_str(d->daemon, "slurm_commands"), "sbatch", &e);

    if (d->machines || !d->daemon)
        return;
    if (strncmp(trouble, "slurm_folder:", strlen("slurm_folder:")) == 0)
        doctor_say(d, DOCTOR_WARN, "slurm", "%s", trouble);
    else if (is_to_change)
        doctor_say(d, DOCTOR_OK, "slurm",
                   "slurm_folder: from the first job on that starts while no other is on "
                   "Slurm, nodes must see %s (%s)",
                   next[0] ? next : state, kind_of(next[0] ? next : state));
    else if (folder[0])
        doctor_say(d, DOCTOR_OK, "slurm", "nodes must see %s (%s)", folder, kind_of(folder));
    else if (sbatch)
        doctor_say(d, DOCTOR_OK, "slurm",
                   "nodes must see %s (%s), or a folder that the setting slurm_folder names",
                   state, kind_of(state));
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
