/* sbatch's options: one table of how each is honoured, or why it cannot be. Options that have
 * no meaning on one machine and do no harm (a partition, an account, --nodes=1) are accepted;
 * an option that would change what the job relies on is reported. Called by script.c.
 * berth-script(7) has the same table. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/script_priv.h"
#include "spec/value.h"

#define NICE_DEFAULT 100 /* Slurm's default for --nice without a number */

typedef int (*handler)(struct sbatch *s, const char *value, struct err *e);

struct row {
    struct script_option option;
    handler apply;    /* NULL: attr, or accepted without effect */
    const char *attr; /* the attribute it sets, to value as it is if apply is NULL; NULL */
    const char *why;  /* why it cannot be honoured; NULL: it can */
};

int
sbatch_set(struct sbatch *s, const char *attr, const char *value, struct err *e)
{
    struct err inner;

    if (attr_set_named(s->r, attr, value, ATTR_COMMAND_LINE, s->clock, &inner) == 0)
        return 0;
    return err_set(e, inner.code, "%s", inner.text);
}

/* --- the GPUs --- */

/* "2", "a100", "a100:2", as Slurm accepts after gpu: or in --gpus. */
static int
set_gpus(struct sbatch *s, const char *value, struct err *e)
{
    const char *colon = strrchr(value, ':');
    const char *count = colon ? colon + 1 : value;
    bool has_count = count[0] && !count[strspn(count, "0123456789")];
    size_t type = has_count ? (size_t)(colon ? colon - value : 0) : strlen(value);
    auto_free char *name = xstrndup(value, type);

    if (!has_count && name[0] && !name[strspn(name, "0123456789.")])
        return parse_refuse(e, value, "is not a number of GPUs; write 2 or a100:2");
    if (strchr(name, ':') || strchr(name, ',') || strchr(name, '('))
        return sbatch_refuse(
            e, "%s: only one type of GPU and a number are supported, as in a100:2", value);
    /* Different options form one request: --gres=gpu:a100:2 and --gpus-per-task=1. Repeating
     * an option replaces its earlier value. */
    if (name[0])
        s->type_row = s->row;
    else if (s->r->type_from == TYPE_WITH_GPUS && s->type_row != s->row) {
        free(name);
        name = xstrdup(s->r->demand.gpu_type);
    }
    auto_free char *gpus =
        xasprintf("%s%s%s", name, name[0] ? ":" : "", has_count ? count : "1");
    return sbatch_set(s, "gpus", gpus, e);
}

static int
on_gres(struct sbatch *s, const char *value, struct err *e)
{
    if (strcasecmp(value, "none") == 0)
        return sbatch_set(s, "gpus", "0", e);
    if (strncmp(value, "gres:", 5) == 0) /* as squeue shows it */
        value += 5;
    if (strcmp(value, "gpu") == 0)
        return sbatch_set(s, "gpus", "1", e);
    if (strncmp(value, "gpu:", 4) == 0)
        return set_gpus(s, value + 4, e);
    return sbatch_refuse(e, "%s: only gpu:N and gpu:TYPE:N are supported", value);
}

/* --- the host --- */

/* Each way to specify memory replaces the others. As in sbatch, a variable yields to a script
 * that specifies it in another way, and overrides one that specifies it in the same way. */
static bool
is_memory_taken(struct sbatch *s, enum sbatch_memory way)
{
    if (s->is_variable && s->memory && s->memory != way)
        return false;
    s->memory = way;
    s->mem_per_cpu = s->mem_per_gpu = 0;
    return true;
}

/* In MiB, as in Slurm: KiB are rounded up, 0 means none. */
static int
parse_mem(const char *value, int64_t *mib, struct err *e)
{
    size_t digits = strspn(value, "0123456789");
    const char *unit = value + digits;
    auto_free char *number = xstrndup(value, digits);
    int64_t kib;

    *mib = 0;
    if (strcmp(value, "0") == 0)
        return 0;
    if (strcasecmp(unit, "K") != 0 && strcasecmp(unit, "KB") != 0)
        return parse_size_mib(value, mib, e);
    if (parse_int(number, 0, INT32_MAX, &kib, NULL) < 0)
        return parse_refuse(e, value, "is not a size; write 8G, 8192M or 8192 (MiB)");
    *mib = (kib + 1023) / 1024;
    return 0;
}

/* As in Slurm, a bare number is MiB. A value too small for any program may be meant as GiB. */
static void
note_mem(struct sbatch *s, const char *value, int64_t mib)
{
    static const int64_t least_mib = 64;
    auto_free char *note = NULL;

    if (mib == 0)
        note = xasprintf("--%s=%s: no memory is reserved, and the job has no limit",
                         sbatch_option(s->row)->name, value);
    else if (mib < least_mib && s->memory == MEMORY_OF_JOB &&
             !value[strspn(value, "0123456789")])
        note = xasprintf("--mem=%s is %lld MiB, as with Slurm; write %sG for GiB", value,
                         (long long)mib, value);
    if (note)
        script_note(s->out, s->line, note);
}

static int
set_mem(struct sbatch *s, enum sbatch_memory way, const char *value, struct err *e)
{
    int64_t mib;

    if (!is_memory_taken(s, way))
        return 0;
    if (parse_mem(value, &mib, e) < 0)
        return -1;
    if (mib > VRAM_MAX_MIB)
        return parse_refuse(e, value, "is more memory than there can be");
    if (way == MEMORY_PER_CPU)
        s->mem_per_cpu = mib;
    else if (way == MEMORY_PER_GPU)
        s->mem_per_gpu = mib;
    if (way == MEMORY_OF_JOB || mib == 0)
        s->r->demand.mem_mib = (int32_t)mib;
    note_mem(s, value, mib);
    return 0;
}

static int
on_mem(struct sbatch *s, const char *value, struct err *e)
{
    return set_mem(s, MEMORY_OF_JOB, value, e);
}

static int
on_mem_per_cpu(struct sbatch *s, const char *value, struct err *e)
{
    return set_mem(s, MEMORY_PER_CPU, value, e);
}

static int
on_mem_per_gpu(struct sbatch *s, const char *value, struct err *e)
{
    return set_mem(s, MEMORY_PER_GPU, value, e);
}

static int
on_cpus_per_gpu(struct sbatch *s, const char *value, struct err *e)
{
    return parse_int(value, 1, CPUS_MAX, &s->cpus_per_gpu, e);
}

/* Books one task's cores; finish_tasks multiplies them once the number of tasks is known. */
static int
on_cpus_per_task(struct sbatch *s, const char *value, struct err *e)
{
    if (sbatch_set(s, "cpus", value, e) < 0)
        return -1;
    s->cpus_per_task = s->r->demand.cpus;
    s->cpus_of_job = false;
    return 0;
}

static int
on_gpus(struct sbatch *s, const char *value, struct err *e)
{
    int rc = value[0] ? set_gpus(s, value, e) : 0;
    if (rc == 0 && value[0])
        s->gpus_of_job = s->r->demand.gpus;
    return rc;
}

static int
on_gpus_per_task(struct sbatch *s, const char *value, struct err *e)
{
    int rc = set_gpus(s, value, e);
    if (rc == 0)
        s->gpus_per_task = s->r->demand.gpus;
    return rc;
}

static int
on_ntasks(struct sbatch *s, const char *value, struct err *e)
{
    return parse_int(value, 1, CPUS_MAX, &s->ntasks, e);
}

static int
on_ntasks_per_node(struct sbatch *s, const char *value, struct err *e)
{
    return parse_int(value, 1, CPUS_MAX, &s->ntasks_per_node, e);
}

/* "1-4" is accepted, as one node is enough. */
static int
on_nodes(struct sbatch *s, const char *value, struct err *e)
{
    (void)s;
    if (value[0] == '1' && (!value[1] || value[1] == '-') &&
        !value[1 + strspn(value + 1, "-0123456789")])
        return 0;
    return sbatch_refuse(e, "%s: there is one machine", value);
}

/* A job without GPUs shares the machine nevertheless: settle_exclusive. */
static int
on_exclusive(struct sbatch *s, const char *value, struct err *e)
{
    if (value && strcasecmp(value, "user") != 0 && strcasecmp(value, "mcs") != 0)
        return sbatch_refuse(e, "=%s: only --exclusive and --exclusive=user are supported",
                             value);
    s->exclusive = true;
    s->exclusive_line = s->line;
    return sbatch_set(s, "exclusive", NULL, e);
}

/* --- its time --- */

/* [R][B]:SIG[@[seconds]]. B signals only the batch shell; R lets a job overlap with
 * reservations, which do not exist here. */
static int
on_signal(struct sbatch *s, const char *value, struct err *e)
{
    size_t flags = strspn(value, "RB");
    bool has_flags = flags > 0 && value[flags] == ':';
    bool is_batch = has_flags && memchr(value, 'B', flags);
    const char *signal = has_flags ? value + flags + 1 : value;
    size_t n = strlen(signal);

    if (n > 0 && signal[n - 1] == '@')
        n--;
    auto_free char *meant = xasprintf("%s%.*s", is_batch ? "B:" : "", (int)n, signal);
    return sbatch_set(s, "signal", meant, e);
}

/* A higher nice value is a lower priority. */
static int
on_nice(struct sbatch *s, const char *value, struct err *e)
{
    int64_t nice = NICE_DEFAULT;

    if (value && value[0] && parse_int(value, -2147483645, 2147483645, &nice, e) < 0)
        return -1;
    s->r->priority = (int32_t)(nice > PRIORITY_MAX   ? PRIORITY_MIN
                               : nice < PRIORITY_MIN ? PRIORITY_MAX
                                                     : -nice);
    return 0;
}

static int
on_no_requeue(struct sbatch *s, const char *value, struct err *e)
{
    (void)value;
    (void)e;
    s->r->requeue = false;
    return 0;
}

/* --- words --- */

/* Sites name their types of GPUs by features: a100, h100. A type that is given explicitly
 * takes precedence, wherever it is: settle_constraint. */
static int
on_constraint(struct sbatch *s, const char *value, struct err *e)
{
    char *type = s->r->demand.gpu_type, said[GPU_TYPE_MAX];
    enum type_origin from = s->r->type_from;

    if (value[strspn(value,
                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")])
        return sbatch_refuse(e,
                             "%s: only one word of a GPU's name is supported, as in a100; or "
                             "use #BERTH --gpu-type and --min-vram",
                             value);
    memcpy(said, type, sizeof said);
    if (sbatch_set(s, "gpu-type", value, e) < 0)
        return -1;
    memcpy(s->constraint, type, sizeof said);
    memcpy(type, said, sizeof said);
    s->r->type_from = from;
    s->constraint_line = s->line;
    return 0;
}

/* An option without meaning on one machine. The script may read some of these values from its
 * environment. */
static int
on_ignored(struct sbatch *s, const char *name, const char *value)
{
    static const char *const kept[][2] = {{"partition", "SLURM_JOB_PARTITION"},
                                          {"account", "SLURM_JOB_ACCOUNT"},
                                          {"qos", "SLURM_JOB_QOS"}};

    for (size_t i = 0; value && i < sizeof kept / sizeof kept[0]; i++)
        if (strcmp(kept[i][0], name) == 0)
            script_add_variable(s->out, xasprintf("%s=%s", kept[i][1], value));
    script_ignore(s->out, name);
    return 0;
}

static int
on_export(struct sbatch *s, const char *value, struct err *e)
{
    (void)e;
    free(s->out->export);
    s->out->export = xstrdup(value[0] ? value : "NONE");
    return 0;
}

/* As Slurm does, checks only the first letter. */
static int
on_open_mode(struct sbatch *s, const char *value, struct err *e)
{
    int letter = value[0] | 32;

    return sbatch_set(s, "open-mode",
                      letter == 'a'   ? "append"
                      : letter == 't' ? "truncate"
                                      : value,
                      e);
}

/* Ignores Slurm's events that Berth does not have; the others apply. */
static int
on_mail_type(struct sbatch *s, const char *value, struct err *e)
{
    static const char *const foreign[] = {"INVALID_DEPEND", "STAGE_OUT",     "TIME_LIMIT_90",
                                          "TIME_LIMIT_80",  "TIME_LIMIT_50", NULL};
    auto_free char *copy = xstrdup(value);
    auto_buf struct buf known = BUF_INIT;
    char *rest = copy, *word;
    const char *none = NULL;

    while ((word = strsep(&rest, ","))) {
        int i = 0;
        if (strcasecmp(word, "NONE") == 0) /* overrides all other words */
            return sbatch_set(s, "mail-type", word, e);
        while (foreign[i] && strcasecmp(word, foreign[i]) != 0)
            i++;
        if (foreign[i])
            none = foreign[i];
        else
            buf_addf(&known, "%s%s", known.len ? "," : "", word);
    }
    if (known.len && sbatch_set(s, "mail-type", buf_str(&known), e) < 0)
        return -1;
    return none ? sbatch_refuse(e, "no mail is sent for %s; use TIME_LIMIT, FAIL or END", none)
                : 0;
}

/* --- the table --- */

static int
on_nothing(struct sbatch *s, const char *value, struct err *e)
{
    (void)s;
    (void)value;
    (void)e;
    return 0;
}

#define NO     TAKES_NOTHING
#define YES    TAKES_VALUE
#define MAYBE  TAKES_MAYBE
#define ONE_M  "there is one machine"
#define LAYOUT "the layout on the machine cannot be chosen"

static const struct row rows[] = {
    /* Honoured. */
    {{"array", 'a', YES}, sbatch_set_array, "array", NULL},
    {{"begin", 'b', YES}, NULL, "begin", NULL},
    {{"clusters", 'M', YES}, sbatch_set_clusters, NULL, NULL},
    {{"comment", 0, YES}, sbatch_set_comment, "comment", NULL},
    {{"constraint", 'C', YES}, on_constraint, "gpu-type", NULL},
    {{"chdir", 'D', YES}, NULL, "chdir", NULL},
    {{"cpus-per-gpu", 0, YES}, on_cpus_per_gpu, "cpus", NULL},
    {{"cpus-per-task", 'c', YES}, on_cpus_per_task, "cpus", NULL},
    {{"dependency", 'd', YES}, sbatch_set_deps, "after", NULL},
    {{"error", 'e', YES}, sbatch_set_error, "error", NULL},
    {{"exclude", 'x', YES}, sbatch_set_excluded, NULL, NULL},
    {{"exclusive", 0, MAYBE}, on_exclusive, "exclusive", NULL},
    {{"export", 0, YES}, on_export, NULL, NULL},
    {{"gpus", 'G', YES}, on_gpus, "gpus", NULL},
    {{"gpus-per-node", 0, YES}, set_gpus, "gpus", NULL},
    {{"gpus-per-task", 0, YES}, on_gpus_per_task, "gpus", NULL},
    {{"gres", 0, YES}, on_gres, "gpus", NULL},
    {{"hold", 'H', NO}, NULL, "hold", NULL},
    {{"input", 'i', YES}, sbatch_set_input, NULL, NULL},
    {{"job-name", 'J', YES}, sbatch_set_name, "name", NULL},
    {{"mail-type", 0, YES}, on_mail_type, "mail-type", NULL},
    {{"mail-user", 0, YES}, NULL, "mail-user", NULL},
    {{"mem", 0, YES}, on_mem, "mem", NULL},
    {{"mem-per-cpu", 0, YES}, on_mem_per_cpu, "mem", NULL},
    {{"mem-per-gpu", 0, YES}, on_mem_per_gpu, "mem", NULL},
    {{"nice", 0, MAYBE}, on_nice, "priority", NULL},
    {{"no-requeue", 0, NO}, on_no_requeue, "requeue", NULL},
    {{"nodelist", 'w', YES}, sbatch_set_nodes_by_name, NULL, NULL},
    {{"nodes", 'N', YES}, on_nodes, NULL, NULL},
    {{"ntasks", 'n', YES}, on_ntasks, NULL, NULL},
    {{"ntasks-per-node", 0, YES}, on_ntasks_per_node, NULL, NULL},
    {{"open-mode", 0, YES}, on_open_mode, "open-mode", NULL},
    {{"output", 'o', YES}, sbatch_set_output, "log", NULL},
    {{"quiet", 'Q', NO}, on_nothing, NULL, NULL},
    {{"requeue", 0, NO}, NULL, "requeue", NULL},
    {{"signal", 0, YES}, on_signal, "signal", NULL},
    {{"tasks-per-node", 0, YES}, on_ntasks_per_node, NULL, NULL},
    {{"time", 't', YES}, sbatch_set_time, "time", NULL},
    {{"verbose", 'v', NO}, on_nothing, NULL, NULL},
    /* Without meaning on one machine. */
    {{"account", 'A', YES}, NULL, NULL, NULL},
    {{"acctg-freq", 0, YES}, NULL, NULL, NULL},
    {{"batch", 0, YES}, NULL, NULL, NULL},
    {{"cluster-constraint", 0, YES}, NULL, NULL, NULL},
    {{"contiguous", 0, NO}, NULL, NULL, NULL},
    {{"cpu-freq", 0, YES}, NULL, NULL, NULL},
    {{"delay-boot", 0, YES}, NULL, NULL, NULL},
    {{"distribution", 'm', YES}, NULL, NULL, NULL},
    {{"get-user-env", 0, MAYBE}, NULL, NULL, NULL},
    {{"gpu-bind", 0, YES}, NULL, NULL, NULL},
    {{"gres-flags", 0, YES}, NULL, NULL, NULL},
    {{"hint", 0, YES}, NULL, NULL, NULL},
    {{"ignore-pbs", 0, NO}, NULL, NULL, NULL},
    {{"kill-on-invalid-dep", 0, YES}, NULL, NULL, NULL},
    {{"mcs-label", 0, YES}, NULL, NULL, NULL},
    {{"mem-bind", 0, YES}, NULL, NULL, NULL},
    {{"network", 0, YES}, NULL, NULL, NULL},
    {{"no-kill", 'k', MAYBE}, NULL, NULL, NULL},
    {{"ntasks-per-core", 0, YES}, NULL, NULL, NULL},
    {{"oversubscribe", 's', NO}, NULL, NULL, NULL},
    {{"partition", 'p', YES}, NULL, NULL, NULL},
    {{"power", 0, YES}, NULL, NULL, NULL},
    {{"prefer", 0, YES}, NULL, NULL, NULL},
    {{"profile", 0, YES}, NULL, NULL, NULL},
    {{"propagate", 0, MAYBE}, NULL, NULL, NULL},
    {{"qos", 'q', YES}, NULL, NULL, NULL},
    {{"spread-job", 0, NO}, NULL, NULL, NULL},
    {{"switches", 0, YES}, NULL, NULL, NULL},
    {{"threads-per-core", 0, YES}, NULL, NULL, NULL},
    {{"use-min-nodes", 0, NO}, NULL, NULL, NULL},
    {{"wait-all-nodes", 0, YES}, NULL, NULL, NULL},
    {{"wckey", 0, YES}, NULL, NULL, NULL},
    /* Refused: the job would lack something. */
    {{"bb", 0, YES}, NULL, NULL, "there is no burst buffer"},
    {{"bbf", 0, YES}, NULL, NULL, "there is no burst buffer"},
    {{"container", 0, YES},
     NULL,
     NULL,
     "Slurm means an OCI bundle; for an image write #BERTH --container=IMAGE"},
    {{"core-spec", 'S', YES}, NULL, NULL, LAYOUT},
    {{"cores-per-socket", 0, YES}, NULL, NULL, LAYOUT},
    {{"deadline", 0, YES}, NULL, NULL, "there are no deadlines; --time limits the run time"},
    {{"export-file", 0, YES}, NULL, NULL, "name the variables with --export"},
    {{"extra-node-info", 'B', YES}, NULL, NULL, LAYOUT},
    {{"gid", 0, YES}, NULL, NULL, "a job runs as the user who submits it"},
    {{"gpu-freq", 0, YES}, NULL, NULL, "clocks are not changed"},
    {{"gpus-per-socket", 0, YES}, NULL, NULL, LAYOUT},
    {{"immediate", 'I', MAYBE}, NULL, NULL, "it waits in the queue"},
    {{"licenses", 'L', YES}, NULL, NULL, "there are no licenses"},
    {{"mincpus", 0, YES}, NULL, NULL, "say --cpus-per-task"},
    {{"nodefile", 'F', YES}, NULL, NULL, ONE_M},
    {{"ntasks-per-gpu", 0, YES}, NULL, NULL, LAYOUT},
    {{"ntasks-per-socket", 0, YES}, NULL, NULL, LAYOUT},
    {{"overcommit", 'O', NO}, NULL, NULL, "reserved cores belong to the job"},
    {{"parsable", 0, NO}, NULL, NULL, "use --parsable on the command line"},
    {{"priority", 0, YES}, NULL, NULL, "the scales differ; use --nice, or #BERTH --priority"},
    {{"reboot", 0, NO}, NULL, NULL, "the machine is not rebooted"},
    {{"reservation", 0, YES}, NULL, NULL, "there are no reservations by name"},
    {{"sockets-per-node", 0, YES}, NULL, NULL, LAYOUT},
    {{"thread-spec", 0, YES}, NULL, NULL, LAYOUT},
    {{"time-min", 0, YES}, NULL, NULL, "a time limit is not shortened to fit"},
    {{"tmp", 0, YES}, NULL, NULL, "disk space is not reserved"},
    {{"uid", 0, YES}, NULL, NULL, "a job runs as the user who submits it"},
    {{"wait", 'W', NO}, NULL, NULL, "use --wait on the command line"},
    {{"wrap", 0, YES}, NULL, NULL, "a script was given already"},
};
#define ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

const struct script_option *
sbatch_option(int i)
{
    return i < ROWS ? &rows[i].option : NULL;
}

int
sbatch_apply(struct sbatch *s, int i, const char *value, int line, struct err *e)
{
    const struct row *row = &rows[i];

    if (row->why)
        return sbatch_refuse(e, "%s", row->why);
    if (row->apply == on_mem_per_cpu || row->apply == on_mem_per_gpu)
        s->mem_line = line;
    if (row->apply == on_cpus_per_gpu)
        s->cpus_line = line;
    if (row->apply == on_ntasks || row->apply == on_ntasks_per_node)
        s->tasks_line = line;
    if (row->apply == on_gpus_per_task)
        s->each_line = line;
    s->line = line;
    s->row = i;
    if (row->apply)
        return row->apply(s, value, e);
    return row->attr ? sbatch_set(s, row->attr, value, e)
                     : on_ignored(s, row->option.name, value);
}

void
sbatch_replace(struct sbatch *s, const char *attr)
{
    if (strcmp(attr, "mem") == 0) {
        (void)is_memory_taken(s, MEMORY_OF_JOB);
    } else if (strcmp(attr, "cpus") == 0) {
        s->cpus_per_gpu = 0;
        s->cpus_of_job = true;
    } else if (strcmp(attr, "gpus") == 0) {
        s->gpus_per_task = s->gpus_of_job = 0;
    }
}
