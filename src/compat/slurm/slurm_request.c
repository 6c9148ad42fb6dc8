/* Turns options of sbatch, srun and salloc into a request; see slurm_request.h. spec/sbatch.c
 * defines the options. */
#include "compat/slurm/slurm_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/common/cli.h"
#include "cli/submit/submit_notes.h"
#include "compat/slurm/slurm_words.h"
#include "spec/attr.h"
#include "spec/when.h"

void
slurm_request_free(struct slurm_request *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->words[i].from);
    free(q->words);
    submission_free(&q->s);
}

void
slurm_request_begin(struct slurm_request *q)
{
    *q = (struct slurm_request){0};
    request_begin(&q->s.req);
    q->s.req.slurm_env = true;
    q->s.req.truncate = true;
    q->s.req.requeue = true;
}

static void
add_word(struct slurm_request *q, const char *from, int option, const char *value,
         bool is_variable)
{
    q->words = xgrow(q->words, q->n, &q->cap, sizeof *q->words);
    q->words[q->n++] = (struct script_word){xstrdup(from), option, value, is_variable};
}

static int
find_option(const char *name)
{
    const struct script_option *o;

    for (int i = 0; (o = sbatch_option(i)); i++)
        if (strcmp(o->name, name) == 0)
            return i;
    err_abort("sbatch has no option --%s", name);
}

#define SBATCH VARIABLES_SBATCH
#define SALLOC VARIABLES_SALLOC
#define SLURM  VARIABLES_SLURM
#define SRUN   VARIABLES_SRUN

/* Indexed by bit; if a command reads two prefixes, the later one wins. */
static const char *const prefixes[] = {"SBATCH", "SALLOC", "SLURM", "SRUN"};
static const struct variable {
    const char *name, *option; /* name after the prefix; equivalent option */
    unsigned of;
} variables[] = {
    {"ACCOUNT", "account", SBATCH | SALLOC | SLURM},
    {"ARRAY_INX", "array", SBATCH},
    {"CLUSTERS", "clusters", SBATCH},
    {"CONSTRAINT", "constraint", SBATCH | SALLOC | SLURM},
    {"CPUS_PER_GPU", "cpus-per-gpu", SBATCH | SALLOC | SLURM},
    {"CPUS_PER_TASK", "cpus-per-task", SRUN},
    {"DEPENDENCY", "dependency", SLURM},
    {"DISTRIBUTION", "distribution", SBATCH},
    {"ERROR", "error", SBATCH},
    {"EXCLUSIVE", "exclusive", SBATCH},
    {"EXPORT", "export", SBATCH},
    {"EXPORT_ENV", "export", SLURM | SRUN},
    {"GPUS", "gpus", SBATCH | SALLOC | SLURM},
    {"GPUS_PER_NODE", "gpus-per-node", SBATCH | SALLOC | SLURM},
    {"GPUS_PER_TASK", "gpus-per-task", SBATCH | SALLOC | SLURM},
    {"GPU_BIND", "gpu-bind", SBATCH},
    {"GPU_FREQ", "gpu-freq", SBATCH},
    {"GRES", "gres", SBATCH | SALLOC | SLURM},
    {"HINT", "hint", SBATCH},
    {"INPUT", "input", SBATCH},
    {"JOB_NAME", "job-name", SBATCH | SLURM},
    {"MEM_PER_CPU", "mem-per-cpu", SBATCH | SALLOC | SLURM},
    {"MEM_PER_GPU", "mem-per-gpu", SBATCH | SALLOC | SLURM},
    {"MEM_PER_NODE", "mem", SBATCH | SALLOC | SLURM},
    {"NO_KILL", "no-kill", SBATCH},
    {"NO_REQUEUE", "no-requeue", SBATCH},
    {"NTASKS", "ntasks", SLURM},
    {"OPEN_MODE", "open-mode", SBATCH},
    {"OUTPUT", "output", SBATCH},
    {"OVERCOMMIT", "overcommit", SBATCH},
    {"PARTITION", "partition", SBATCH | SALLOC | SLURM},
    {"QOS", "qos", SBATCH | SALLOC | SLURM},
    {"REQUEUE", "requeue", SBATCH},
    {"RESERVATION", "reservation", SBATCH},
    {"SIGNAL", "signal", SBATCH},
    {"THREADS_PER_CORE", "threads-per-core", SBATCH},
    {"TIMELIMIT", "time", SBATCH | SALLOC | SLURM},
    {"WCKEY", "wckey", SBATCH},
};

static void
take_variable(struct slurm_request *q, const char *prefix, const struct variable *v)
{
    auto_free char *name = xasprintf("%s_%s", prefix, v->name);
    const char *value = getenv(name);
    int option = value ? find_option(v->option) : -1;
    bool is_flag = value && sbatch_option(option)->takes == TAKES_NOTHING;

    /* A flag's variable has a boolean value: SBATCH_REQUEUE=1. */
    if (value && (!is_flag || slurm_is_yes(value)))
        add_word(q, name, option, is_flag ? NULL : value, true);
}

void
slurm_take_variables(struct slurm_request *q, unsigned of)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        for (size_t k = 0; k < sizeof prefixes / sizeof prefixes[0]; k++)
            if (variables[i].of & of & 1U << k)
                take_variable(q, prefixes[k], &variables[i]);
    }
}

void
slurm_take_option(struct slurm_request *q, const struct slurm_reader *r, int option)
{
    q->quiet |= strcmp(sbatch_option(option)->name, "quiet") == 0;
    add_word(q, r->said, option, r->value, false);
}

static void
say_list(const struct script_list *list, bool wrong)
{
    for (size_t i = 0; i < list->n; i++) {
        if (wrong)
            (void)slurm_fail(1, "%s", list->at[i]);
        else
            cli_say("%s", list->at[i]);
    }
}

static void
say_notes(const struct script *s)
{
    auto_buf struct buf names = BUF_INIT;

    say_list(&s->notes, false);
    for (size_t i = 0; i < s->ignored.n; i++)
        buf_addf(&names, "%s--%s", i ? ", " : "", s->ignored.at[i]);
    if (s->ignored.n)
        cli_say("ignored, as %s nothing on one machine: %s",
                s->ignored.n == 1 ? "it means" : "they mean", buf_str(&names));
}

int
slurm_settle(struct slurm_request *q, struct submit_script *script, int wrong)
{
    struct when_clock clock;
    struct script read;
    struct err e = {0};
    int status = 0;

    submit_read_clock(&clock);
    (void)script_read_over(script->shown ? script->shown : "", buf_str(&script->head),
                           script->head.len, &clock, slurm_node(), q->words, q->n, &q->s.req,
                           &read, &e);
    say_list(&read.errors, true);
    say_list(&read.unsupported, true);
    if (read.errors.n)
        status = wrong;
    else if (read.unsupported.n)
        status = 1;
    else if (submit_take_words(&read, &q->s.words, &e) < 0)
        status = slurm_fail(1, "%s", e.text);
    if (status == 0 && !q->quiet)
        say_notes(&read);
    script->interpreter = TAKE(read.interpreter);
    script_free(&read);
    if (status == 0 && script->head.len)
        submit_note_script(script, &q->s.req);
    return status;
}
