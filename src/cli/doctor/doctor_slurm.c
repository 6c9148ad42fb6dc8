/* Checks of `berth doctor` for Slurm: whether its programs are installed, and whether
 * slurmctld answers. Neither is a failure if no jobs are sent to Slurm. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/child_output.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fs_kind.h"
#include "cli/ask/answer.h"
#include "cli/doctor/doctor_verb.h"
#include "sys/slurm_find.h"

#define PATIENCE_MS 10000

/* The type of the file system that holds path, or would hold it. */
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
    const char *const argv[] = {scontrol, "ping", NULL};
    const struct child ping = {.argv = argv, .patience_ms = PATIENCE_MS, .with_errors = true};

    if (!scontrol) {
        buf_adds(words, folder[0] ? e.text
                                  : "not found; --on slurm needs Slurm's sbatch, squeue and "
                                    "scancel");
        return folder[0] ? DOCTOR_FAIL : DOCTOR_OK;
    }
    (void)child_output(&ping, &out, NULL, NULL);
    if (strstr(buf_str(&out), " UP")) {
        buf_addf(words, "slurmctld answers (%s), for --on slurm", scontrol);
        return DOCTOR_OK;
    }
    buf_addf(words, "'%s ping' finds no slurmctld%s%.*s; jobs with --on slurm wait for it",
             scontrol, out.len ? ": " : "", (int)strcspn(buf_str(&out), "\n"), buf_str(&out));
    return DOCTOR_WARN;
}
