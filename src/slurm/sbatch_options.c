/* The table that maps each attribute of a job to an option of sbatch. A row has a function, or
 * a note about what Slurm cannot do, or neither if the attribute has already had its effect
 * (unique) or is part of the script (env). Its callers write the script: `berth export`, and
 * the engine that runs jobs on Slurm. docs/growing-out-of-one-machine.md contains the same
 * table. */
#include "slurm/sbatch_options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"

#define SIGNAL_SECONDS_MAX 65535 /* of --signal */

struct mapping {
    const struct request *r;
    const struct sbatch_site *site;
    struct sbatch_options *out;
};

typedef void (*mapper)(struct mapping *m);

static void
append(char ***list, int *n, char *text)
{
    *list = xrealloc(*list, ((size_t)*n + 2) * sizeof **list);
    (*list)[(*n)++] = text;
    (*list)[*n] = NULL;
}

static void __attribute__((format(printf, 2, 3)))
option(struct mapping *m, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    append(&m->out->options, &m->out->n_options, buf_take(&text));
}

static void
note(struct mapping *m, const char *attr, const char *why)
{
    append(&m->out->notes, &m->out->n_notes, xasprintf("%s: %s", attr, why));
}

/* --- the GPUs --- */

static bool
contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return n == 0;
}

/* True if GPUs of type i have the memory that the job needs, or if that is unknown. */
static bool
is_large_enough(const struct mapping *m, int i)
{
    const struct demand *d = &m->r->demand;
    int32_t least = d->vram_mib > d->min_vram_mib ? d->vram_mib : d->min_vram_mib;

    return !m->site->type_mib || m->site->type_mib[i] >= least;
}

static void
note_types(struct mapping *m, int named, int fit, int all)
{
    if (m->r->demand.gpu_type[0] && named == 0)
        note(m, "gpu-type", "no type of GPU in the cluster contains it; any GPU will do");
    else if (fit == 0)
        note(m, "vram", "no type of GPU has that much; any GPU will do");
    else if (fit > 1 && named < all)
        note(m, "gpu-type", "several types of GPU contain it; any GPU will do");
    else if (fit > 1 && fit < all)
        note(m, "vram", "several types of GPU have that much, others less; any GPU will do");
}

/* The only type that fits the job, as spelled in gres.conf; NULL: any type will do, or there
 * is no single one. */
static const char *
wanted_type(struct mapping *m)
{
    const char *wanted = m->r->demand.gpu_type, *found = NULL;
    const char *const *types = m->site->gpu_types;
    int named = 0, fit = 0, n = 0;

    if (!types)
        return wanted[0] ? wanted : NULL;
    for (; types[n]; n++) {
        if (!contains(types[n], wanted))
            continue;
        named++;
        if (!is_large_enough(m, n))
            continue;
        found = types[n];
        fit++;
    }
    if (n > 1 || named == 0)
        note_types(m, named, fit, n);
    return fit == 1 && n > 1 ? found : NULL;
}

/* How much of one GPU's memory the job needs; 0: it gets whole GPUs. */
static int64_t
part_mib(const struct mapping *m)
{
    const struct demand *d = &m->r->demand;

    if (demand_n_gpus(d) != 1 || d->exclusive || d->n_ids)
        return 0;
    if (d->vram_mib)
        return d->vram_mib;
    return ((int64_t)d->share_permille * m->site->gpu_mib + 999) / 1000;
}

static bool
map_shards(struct mapping *m, const char *type)
{
    int64_t part = part_mib(m), shard = m->site->shard_mib, shards;

    if (part <= 0 || shard <= 0 || type)
        return false;
    shards = (part + shard - 1) / shard;
    /* A whole GPU may have more memory than its shards add up to. */
    if (m->site->gpu_mib && shards > m->site->gpu_mib / shard)
        return false;
    option(m, "--gres=shard:%lld", (long long)shards);
    return true;
}

static void
map_gpus(struct mapping *m)
{
    const struct demand *d = &m->r->demand;
    int n = demand_n_gpus(d);
    const char *type = n ? wanted_type(m) : NULL;

    if (n == 0 || map_shards(m, type))
        return;
    if (m->r->vram_auto)
        note(m, "vram", "not learned; the job gets whole GPUs");
    else if (d->vram_mib)
        note(m, "vram", "the job gets whole GPUs, not a part");
    else if (d->share_permille)
        note(m, "share", "the job gets a whole GPU, not a part");
    option(m, "--gres=gpu%s%s:%d", type ? ":" : "", type ? type : "", n);
}

static void
map_min_vram(struct mapping *m)
{
    if (m->r->demand.min_vram_mib > m->site->gpu_mib && !m->site->type_mib)
        note(m, "min-vram",
             "Slurm does not choose by memory; use --gres=gpu:TYPE or a feature");
}

static void
map_cpus(struct mapping *m)
{
    if (m->r->demand.cpus)
        option(m, "--cpus-per-task=%d", m->r->demand.cpus);
}

static void
map_mem(struct mapping *m)
{
    if (m->r->demand.mem_mib)
        option(m, "--mem=%dM", m->r->demand.mem_mib);
}

/* --- time --- */

static void
map_time(struct mapping *m)
{
    int64_t s = (m->r->limit_ms + 999) / 1000;

    if (s == 0)
        return;
    option(m, "--time=%lld-%02d:%02d:%02d", (long long)(s / 86400), (int)(s / 3600 % 24),
           (int)(s / 60 % 60), (int)(s % 60));
    if (s % 60)
        note(m, "time", "Slurm rounds the limit up to whole minutes");
}

/* Only with B: the signal reaches a script without srun. */
static void
map_signal(struct mapping *m)
{
    const char *name = libc_signal_name(m->r->warn_signal);
    int64_t s = (m->r->warn_ms + 999) / 1000;

    if (!m->r->warn_signal)
        return;
    if (s > SIGNAL_SECONDS_MAX) {
        s = SIGNAL_SECONDS_MAX;
        note(m, "signal", "Slurm warns 65535 seconds before the limit at the earliest");
    }
    if (name)
        option(m, "--signal=B:%s@%d", name, (int)s);
    else
        option(m, "--signal=B:%d@%d", m->r->warn_signal, (int)s);
    if (!m->r->warn_batch)
        note(m, "signal", "only the command's own process gets it; use srun for all processes");
}

/* Slurm's times have a resolution of one second; this form needs no time zone. */
static void
map_begin(struct mapping *m)
{
    if (m->r->begin_us)
        option(m, "--begin=uts%lld", (long long)((m->r->begin_us + 999999) / 1000000));
}

/* A job accepted by a daemon always has a grace. */
static void
map_grace(struct mapping *m)
{
    int64_t wait_ms = m->site->kill_wait_ms ? m->site->kill_wait_ms : GRACE_DEFAULT_MS;

    if (request_grace_ms(m->r) != wait_ms)
        note(m, "grace", "KillWait of the cluster decides");
}

/* --- order --- */

static void
map_priority(struct mapping *m)
{
    if (m->r->priority < m->site->top_priority)
        option(m, "--nice=%d", m->site->top_priority - m->r->priority);
    else if (m->r->priority > m->site->top_priority)
        note(m, "priority", "users can only lower it");
}

static void
map_array(struct mapping *m)
{
    const struct task_set *t = &m->r->array;
    auto_buf struct buf tasks = BUF_INIT;

    if (t->n == 0)
        return;
    task_set_text(t, &tasks);
    if (m->r->array_max)
        buf_addf(&tasks, "%%%d", m->r->array_max);
    option(m, "--array=%s", buf_str(&tasks));
    if (m->site->array_size_max && t->ranges[t->n - 1].last >= m->site->array_size_max)
        note(m, "array", "MaxArraySize of the cluster is too small for its task numbers");
}

static void
map_dependency(struct mapping *m)
{
    if (m->r->n_deps)
        option(m, "--kill-on-invalid-dep=yes");
}

static void
map_hold(struct mapping *m)
{
    if (m->r->hold)
        option(m, "--hold");
}

static void
map_preemptible(struct mapping *m)
{
    if (!m->r->preemptible)
        return;
    if (!m->site->preempt_qos)
        note(m, "preemptible", "it is not stopped for other jobs; use a QOS or partition");
}

/* Slurm requeues a job only if its node fails. */
static void
map_oom_retries(struct mapping *m)
{
    if (m->r->oom_retries > 0)
        note(m, "oom-retries", "a job that runs out of VRAM is not run again");
}

static void
map_requeue(struct mapping *m)
{
    bool again = m->r->requeue || (m->r->preemptible && m->site->preempt_qos);

    option(m, again ? "--requeue" : "--no-requeue");
}

/* --- environment, mail, names, output --- */

static void
map_chdir(struct mapping *m)
{
    if (m->r->chdir)
        option(m, "--chdir=%s", m->r->chdir);
}

/* With this option the script starts with the environment of the user's login shell. */
static void
map_login(struct mapping *m)
{
    if (m->r->login)
        option(m, "--export=NONE");
}

static void
map_mail_user(struct mapping *m)
{
    if (m->r->hooks && m->r->hooks->mail_user)
        option(m, "--mail-user=%s", m->r->hooks->mail_user);
}

static void
map_mail_type(struct mapping *m)
{
    static const struct {
        uint32_t type;
        const char *word;
    } words[] = {{MAIL_BEGIN, "BEGIN"},
                 {MAIL_END, "END"},
                 {MAIL_FAIL, "FAIL"},
                 {MAIL_REQUEUE, "REQUEUE"},
                 {MAIL_TIME_LIMIT, "TIME_LIMIT"},
                 {MAIL_ARRAY_TASKS, "ARRAY_TASKS"}};
    uint32_t types = m->r->hooks ? hooks_mail_types(m->r->hooks) : 0;
    auto_buf struct buf list = BUF_INIT;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (types & words[i].type)
            buf_addf(&list, "%s%s", list.len ? "," : "", words[i].word);
    if (list.len)
        option(m, "--mail-type=%s", buf_str(&list));
}

static void
map_name(struct mapping *m)
{
    if (m->r->name)
        option(m, "--job-name=%s", m->r->name);
}

static void
map_comment(struct mapping *m)
{
    const char *comment = m->site->comment ? m->site->comment : m->r->comment;

    if (comment)
        option(m, "--comment=%s", comment);
}

/* Slurm's placeholders equal Berth's, except for three that it lacks. */
static void
map_file(struct mapping *m, const char *attr, const char *name, const char *file)
{
    auto_buf struct buf to = BUF_INIT;
    bool lost = false;

    if (!file)
        return;
    for (const char *p = file; *p; p++) {
        size_t width = *p == '%' ? strspn(p + 1, "0123456789") : 0;

        if (*p == '%' && p[width + 1] && strchr("rgs", p[width + 1])) {
            lost = true;
            p += width + 1;
        } else if (*p == '%' && p[width + 1]) {
            buf_add(&to, p, width + 2);
            p += width + 1;
        } else {
            buf_addc(&to, *p);
        }
    }
    if (lost)
        note(m, attr, "%r, %g and %s are left out");
    if (strchr(file, '\\'))
        note(m, attr, "a name with a backslash is taken literally");
    option(m, "--%s=%s", name, buf_str(&to));
}

static void
map_log(struct mapping *m)
{
    map_file(m, "log", "output", m->r->log);
}

static void
map_error(struct mapping *m)
{
    map_file(m, "error", "error", m->r->error);
}

static void
map_open_mode(struct mapping *m)
{
    if (m->r->log || m->r->error)
        option(m, "--open-mode=%s", m->r->truncate ? "truncate" : "append");
}

/* --- the table --- */

#define CHOOSES  "Slurm chooses the GPUs"
#define MEASURES "Slurm does not measure GPUs"
#define COMMANDS "no command is run; use mail, or a job that depends on this one"
#define BATCH    "a batch job has no terminal; use srun --pty"

static const struct row {
    const char *attr;
    mapper map;
    const char *note;
} rows[] = {
    {"gpus", map_gpus, NULL}, /* also vram, share, exclusive, gpu-type */
    {"vram", NULL, NULL},
    {"share", NULL, NULL},
    {"exclusive", NULL, NULL},
    {"gpu-ids", NULL, CHOOSES},
    {"devices", NULL, CHOOSES},
    {"gpu-type", NULL, NULL},
    {"min-vram", map_min_vram, NULL},
    {"gpu-cc", NULL, "Slurm does not choose by compute capability; use --gres=gpu:TYPE"},
    {"max-used", NULL, MEASURES},
    {"max-load", NULL, MEASURES},
    {"margin", NULL, MEASURES},
    {"idle", NULL, MEASURES},
    {"placement", NULL, CHOOSES},
    {"vram-cap", NULL, "Slurm does not limit VRAM"},
    {"on-exceed", NULL, MEASURES},
    {"cpus", map_cpus, NULL},
    {"cpu-bind", NULL, "Slurm binds jobs as its own settings say"},
    {"mem", map_mem, NULL},
    {"time", map_time, NULL},
    {"on-timeout", NULL, "a job is not queued again at its limit"},
    {"max-requeues", NULL, NULL}, /* handled with on-timeout */
    {"signal", map_signal, NULL},
    {"grace", map_grace, NULL},
    {"priority", map_priority, NULL},
    {"after", map_dependency, NULL}, /* also after-any, after-failed */
    {"singleton", NULL, NULL},       /* sbatch_add_dependency */
    {"begin", map_begin, NULL},
    {"array", map_array, NULL},
    {"hold", map_hold, NULL},
    {"unique", NULL, NULL},
    {"on", NULL, NULL},
    {"pack", NULL, NULL},
    {"preemptible", map_preemptible, NULL},
    {"cancel", NULL, NULL},
    {"retries", NULL, "a job that fails is not run again"},
    {"oom-retries", map_oom_retries, NULL},
    {"requeue", map_requeue, NULL},
    {"interactive", NULL, BATCH},
    {"pty", NULL, BATCH},
    {"screen", NULL, BATCH},
    {"chdir", map_chdir, NULL},
    {"env", NULL, NULL},
    {"slurm-env", NULL, NULL},
    {"env-setup", NULL, NULL},
    {"conda", NULL, NULL},
    {"container", NULL, "no image is started; use podman or apptainer in the command"},
    {"container-mount", NULL, NULL}, /* handled with container */
    {"login", map_login, NULL},
    {"on-start", NULL, COMMANDS},
    {"on-end", NULL, COMMANDS},
    {"on-fail", NULL, COMMANDS},
    {"webhook", NULL, COMMANDS},
    {"mail-user", map_mail_user, NULL},
    {"mail-type", map_mail_type, NULL},
    {"name", map_name, NULL},
    {"tag", NULL, "jobs have no tags; use --comment or --wckey"},
    {"comment", map_comment, NULL},
    {"log", map_log, NULL},
    {"error", map_error, NULL},
    {"log-max", NULL, "logs are not shortened"},
    {"open-mode", map_open_mode, NULL},
};
#define ROWS (sizeof rows / sizeof rows[0])

static void
map_site(struct mapping *m)
{
    const char *qos =
        m->r->preemptible && m->site->preempt_qos ? m->site->preempt_qos : m->site->qos;

    if (m->site->partition)
        option(m, "--partition=%s", m->site->partition);
    if (m->site->account)
        option(m, "--account=%s", m->site->account);
    if (qos)
        option(m, "--qos=%s", qos);
    option(m, "--nodes=1");
}

void
sbatch_options_of(const struct request *r, const struct sbatch_site *site,
                  struct sbatch_options *out)
{
    struct mapping m = {.r = r, .site = site, .out = out};

    *out = (struct sbatch_options){0};
    map_site(&m);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].map)
            rows[i].map(&m);
        if (rows[i].note && attr_is_said(attr_find(rows[i].attr, ATTR_COMMAND_LINE), r))
            note(&m, rows[i].attr, rows[i].note);
    }
}

void
sbatch_options_free(struct sbatch_options *o)
{
    text_list_free(o->options);
    text_list_free(o->notes);
    *o = (struct sbatch_options){0};
}

bool
sbatch_options_know(const char *attr)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].attr, attr) == 0)
            return true;
    return false;
}

/* --- dependencies --- */

int
sbatch_add_dependency(const struct request *r, sbatch_add_id add_id, void *context,
                      struct buf *out)
{
    static const char *const words[] = {
        [DEP_SUCCESS] = "afterok", [DEP_ANY] = "afterany", [DEP_FAILED] = "afternotok"};
    int unknown = 0, last = -1;

    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *dep = &r->deps[i];
        auto_buf struct buf id = BUF_INIT;

        if (!add_id(context, dep, &id)) {
            unknown++;
            continue;
        }
        if ((int)dep->type != last)
            buf_addf(out, "%s%s", last >= 0 ? "," : "", words[dep->type]);
        buf_addf(out, ":%s", buf_str(&id));
        last = (int)dep->type;
    }
    if (r->singleton)
        buf_addf(out, "%ssingleton", last >= 0 ? "," : "");
    return unknown;
}

/* sbatch accepts a backslash before any character, also within quotes. */
void
sbatch_add_quoted(const char *argument, struct buf *out)
{
    buf_addc(out, '"');
    for (; *argument; argument++) {
        if (*argument == '"' || *argument == '\\')
            buf_addc(out, '\\');
        buf_addc(out, *argument);
    }
    buf_addc(out, '"');
}
