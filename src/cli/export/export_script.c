/* Writes a job as a batch script: #SBATCH lines, lost features as comments, then the command.
 * sbatch reads its lines up to the first that is not a comment, and root, who submits other
 * users' jobs, may use options that these users may not: so no text from a job may add a line.
 * sbatch also refuses a carriage return at the end of a line, which the quoting here
 * avoids. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/common/quote.h"
#include "cli/export/export_priv.h"

#define ARGUMENT_MAX 100000 /* bytes; the kernel's limit is 131072 */

/* True if a shell can set this variable. */
static bool
is_shell_name(const char *entry)
{
    size_t n = strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return entry[n] == '=' && n > 0 && !(entry[0] >= '0' && entry[0] <= '9');
}

static void
add_line(struct buf *out, const char *before, const char *word, const char *after)
{
    buf_adds(out, before);
    quote_add(out, word);
    buf_adds(out, after);
}

/* Only the folder in which a job was submitted can contain one; other text was checked. */
static bool
has_line_break(const char *text)
{
    return text && strchr(text, '\n');
}

/* --- the environment --- */

/* Sets Berth's variables for programs that read them. */
static void
add_own_variables(struct export_data *x, const struct export_job *job, struct buf *out)
{
    buf_adds(
        out,
        "export BERTH_JOB_ID=$SLURM_JOB_ID BERTH_ATTEMPT=$((${SLURM_RESTART_COUNT:-0} + 1))"
        " BERTH_GPUS=${CUDA_VISIBLE_DEVICES:-}\n");
    if (job->req.array.n)
        buf_adds(out, "export BERTH_ARRAY_JOB_ID=$SLURM_ARRAY_JOB_ID "
                      "BERTH_ARRAY_TASK_ID=$SLURM_ARRAY_TASK_ID "
                      "BERTH_ARRAY_TASK_COUNT=$SLURM_ARRAY_TASK_COUNT\n");
    for (char *const *entry = job->req.env; entry && *entry; entry++) {
        size_t name = strcspn(*entry, "=") + 1;

        if (!is_shell_name(*entry)) {
            export_note(x, "env: a name that a shell cannot set is left out");
            continue;
        }
        buf_adds(out, "export ");
        buf_add(out, *entry, name);
        add_line(out, "", *entry + name, "\n");
    }
}

static void
add_conda(struct buf *out, const char *name)
{
    buf_adds(out, "for conda in \"${CONDA_PREFIX:-}/../..\" \"${CONDA_PREFIX:-}\" ~/anaconda3 "
                  "~/miniconda3"
                  " /opt/conda ~/miniforge3 \\\n"
                  "    \"$(command conda info --base 2>/dev/null)\"; do\n"
                  "    [ ! -f \"$conda/etc/profile.d/conda.sh\" ] || break\n"
                  "done\n");
    add_line(out, ". \"$conda/etc/profile.d/conda.sh\" && conda activate ", name, " || exit\n");
}

/* --- the command --- */

/* The process that Slurm starts becomes the command, so that a warning signal (--signal=B:)
 * reaches it. A set-up may define functions, so then the command runs in the same shell. */
static void
add_command(struct buf *out, const struct request *r)
{
    if (r->argv) {
        buf_adds(out, "exec --");
        for (char *const *word = r->argv; *word; word++)
            add_line(out, " ", *word, "");
        buf_addc(out, '\n');
    } else if ((r->conda && r->conda[0]) || (r->env_setup && r->env_setup[0])) {
        add_line(out, "eval -- ", r->command, "\n");
    } else if (strlen(r->command) <= ARGUMENT_MAX) {
        add_line(out, "exec /bin/sh -c ", r->command, "\n");
    } else {
        add_line(out, "command=", r->command, "\nexec /bin/sh /dev/fd/9 9<<<\"$command\"\n");
    }
}

static void
add_body(struct export_data *x, const struct export_job *job, struct buf *out)
{
    const struct request *r = &job->req;

    buf_addf(out, "umask %04o\n", job->umask_bits);
    if (has_line_break(r->chdir))
        add_line(out, "cd -- ", r->chdir, " || exit\n");
    add_own_variables(x, job, out);
    if (r->conda && r->conda[0])
        add_conda(out, r->conda);
    if (r->env_setup && r->env_setup[0])
        add_line(out, "eval -- ", r->env_setup, " || exit\n");
    add_command(out, r);
}

/* --- the head --- */

static void
add_note(struct export_data *x, const char *lost, struct buf *out)
{
    buf_addf(out, "# %s\n", lost);
    export_note(x, lost);
}

/* Slurm cannot wait for a job that is still running here, so the job is submitted held. */
static void
add_waiting(struct export_data *x, const struct export_job *job, struct buf *out)
{
    static const char lost[] = "after: it waits for a job that runs here; submitted held";

    if (!job->must_wait)
        return;
    add_note(x, lost, out);
    if (!job->req.hold)
        buf_adds(out, "#SBATCH --hold\n");
}

static void
add_option(const char *option, struct buf *out)
{
    buf_adds(out, "#SBATCH ");
    sbatch_add_quoted(has_line_break(option) ? "--chdir=/tmp" : option, out);
    buf_addc(out, '\n');
}

void
export_script(struct export_data *x, const struct export_job *job,
              const struct sbatch_site *site, struct buf *out)
{
    struct sbatch_site own = *site;
    struct sbatch_options o;
    const char *comment = job->req.comment;
    auto_free char *marked = xasprintf("berth:%s.%u%s%s", x->key, job->id, comment ? " " : "",
                                       comment ? comment : "");

    own.comment = marked;
    sbatch_options_of(&job->req, &own, &o);
    buf_addf(out, "#!/bin/bash\n# Berth's job %u, of %s.\n", job->id, job->user);
    for (int i = 0; i < o.n_notes; i++)
        add_note(x, o.notes[i], out);
    if (has_line_break(job->req.chdir))
        add_note(x, "chdir: a line break in its name; logs without a folder go to /tmp", out);
    add_waiting(x, job, out);
    for (int i = 0; i < o.n_options; i++)
        add_option(o.options[i], out);
    sbatch_options_free(&o);
    buf_addc(out, '\n');
    add_body(x, job, out);
}
