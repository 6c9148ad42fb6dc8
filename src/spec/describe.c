/* Prints a request back to the user, for `submit --dry-run`, in normalised form: a bare 90 is
 * 1m30s, a fraction a share, tomorrow a date. */
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/libc.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"
#include "spec/value.h"

#define NAME_COLUMNS 14

static void __attribute__((format(printf, 3, 4)))
line(struct buf *out, const char *name, const char *fmt, ...)
{
    va_list ap;

    buf_addf(out, "%-*s", NAME_COLUMNS, name);
    va_start(ap, fmt);
    buf_addv(out, fmt, ap);
    va_end(ap);
    buf_addc(out, '\n');
}

static void
text_line(struct buf *out, const char *name, const char *text)
{
    auto_buf struct buf safe = BUF_INIT;

    if (!text)
        return;
    text_add_safe(&safe, text, strlen(text), 0);
    line(out, name, "%s", buf_str(&safe));
}

static void
attr_line(const struct attr *a, const struct request *r, struct buf *out)
{
    auto_buf struct buf text = BUF_INIT;

    attr_say(a, r, &text);
    if (attr_is_said(a, r))
        line(out, a->name, "%s", buf_str(&text));
}

/* Prints the named attributes, in this order, by their rows. */
static void
attr_lines(const char *const *names, const struct request *r, struct buf *out)
{
    for (; *names; names++)
        attr_line(attr_find(*names, ATTR_COMMAND_LINE), r, out);
}

static void
time_line(struct buf *out, const char *name, int64_t ms)
{
    char text[24];

    if (ms > 0)
        line(out, name, "%s", format_duration(ms, text));
}

static void
command_line(const struct request *r, struct buf *out)
{
    auto_buf struct buf words = BUF_INIT;

    for (char *const *arg = r->argv; arg && *arg; arg++)
        buf_addf(&words, "%s%s", arg == r->argv ? "" : " ", *arg);
    text_line(out, "command", r->command ? r->command : buf_str(&words));
}

static void
list_lines(const struct request *r, struct buf *out)
{
    const struct demand *d = &r->demand;
    auto_buf struct buf ids = BUF_INIT, devices = BUF_INIT, tags = BUF_INIT;

    for (int i = 0; i < d->n_ids; i++)
        buf_addf(&ids, "%s%d", i ? "," : "", d->ids[i]);
    for (int i = 0; i < GPU_MAX; i++)
        if (d->devices >> i & 1)
            buf_addf(&devices, "%s%d", devices.len ? "," : "", i);
    for (char *const *tag = r->tags; tag && *tag; tag++)
        buf_addf(&tags, "%s%s", tags.len ? "," : "", *tag);
    text_line(out, "gpu-ids", r->gpu_names ? r->gpu_names : ids.len ? buf_str(&ids) : NULL);
    text_line(out, "devices", devices.len ? buf_str(&devices) : NULL);
    text_line(out, "tag", tags.len ? buf_str(&tags) : NULL);
}

static void
gpu_lines(const struct request *r, struct buf *out)
{
    static const char *const rows[] = {"vram",     "share",    "exclusive", "gpu-type",
                                       "min-vram", "max-used", "max-load",  "margin",
                                       "gpu-cc",   NULL};
    const struct demand *d = &r->demand;
    char size[24];

    if (d->engine == ENGINE_SLURM)
        text_line(out, "on", d->pack ? "slurm, packed" : "slurm");
    if (d->gpus == 0)
        line(out, "gpus", "none");
    else
        line(out, "gpus", "%d%s", d->gpus,
             !demand_is_whole(d) || r->vram_auto ? ""
             : d->engine == ENGINE_SLURM         ? ", whole"
                                                 : ", whole and idle");
    if (r->vram_auto)
        line(out, "vram", "auto");
    attr_lines(rows, r, out);
    if (d->idle_mib > 0)
        line(out, "idle", "below %s", format_mib(d->idle_mib, size));
    text_line(out, "placement", value_placing_name(d->placement));
}

static void
time_lines(const struct request *r, struct buf *out)
{
    char text[24];

    time_line(out, "time limit", r->limit_ms);
    if (r->on_timeout == ON_TIMEOUT_REQUEUE)
        line(out, "on-timeout", "requeue, %d times at most", r->max_requeues);
    if (r->warn_signal)
        line(out, "signal", "%s, %s before the limit%s",
             libc_signal_name(r->warn_signal) ? libc_signal_name(r->warn_signal) : "real-time",
             format_duration(r->warn_ms, text),
             r->warn_batch ? ", to the command's own process" : "");
    if (r->begin_us) {
        time_t t = (time_t)(r->begin_us / 1000000);
        struct tm tm;
        char utc[40];
        gmtime_r(&t, &tm);
        strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ", &tm);
        line(out, "begin", "%s", utc);
    }
}

static void
dep_lines(const struct request *r, struct buf *out)
{
    static const char *const names[] = {
        [DEP_SUCCESS] = "after", [DEP_ANY] = "after-any", [DEP_FAILED] = "after-failed"};

    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *d = &r->deps[i];
        if (d->name)
            text_line(out, names[d->type], d->name);
        else if (d->task >= 0)
            line(out, names[d->type], "%u_%d", d->job, d->task);
        else
            line(out, names[d->type], "%u", d->job);
    }
}

static void
also_line(const struct request *r, struct buf *out)
{
    const char *const words[] = {r->hold ? "hold" : NULL, r->requeue ? "requeue" : NULL,
                                 r->unique ? "unique" : NULL, r->singleton ? "singleton" : NULL,
                                 r->preemptible ? "preemptible" : NULL};
    auto_buf struct buf all = BUF_INIT;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i])
            buf_addf(&all, "%s%s", all.len ? " " : "", words[i]);
    if (all.len)
        line(out, "also", "%s", buf_str(&all));
}

static void
turn_lines(const struct request *r, struct buf *out)
{
    auto_buf struct buf tasks = BUF_INIT;

    if (r->priority)
        line(out, "priority", "%d", r->priority);
    if (r->array.n) {
        task_set_text(&r->array, &tasks);
        if (r->array_max)
            buf_addf(&tasks, ", %d at once", r->array_max);
        line(out, "array", "%lld tasks: %s", (long long)task_set_count(&r->array),
             buf_str(&tasks));
    }
    dep_lines(r, out);
    if (r->retries)
        line(out, "retries", "%d", r->retries);
    if (r->oom_retries > 0)
        line(out, "oom-retries", "%d", r->oom_retries);
    if (r->interactive)
        line(out, "interactive", "%s", r->pty ? "on a terminal" : "yes");
    if (r->screen)
        line(out, "screen", "yes");
    also_line(r, out);
}

static void
hook_lines(const struct hooks *h, struct buf *out)
{
    auto_buf struct buf types = BUF_INIT;

    if (!h)
        return;
    text_line(out, "on-start", h->on_start);
    text_line(out, "on-end", h->on_end);
    text_line(out, "on-fail", h->on_fail);
    text_line(out, "webhook", h->webhook);
    hooks_add_types(hooks_mail_types(h), &types);
    if (types.len)
        line(out, "mail", "%s to %s", buf_str(&types), h->mail_user ? h->mail_user : "you");
}

void
request_describe(const struct request *r, struct buf *out)
{
    static const char *const host[] = {"cpus", "mem", NULL},
                             *const texts[] = {"comment", "log", "error", "log-max", NULL},
                             *const last[] = {"slurm-env", NULL};
    const struct attr *a;

    command_line(r, out);
    text_line(out, "name", r->name);
    text_line(out, "model", r->llm);
    gpu_lines(r, out);
    list_lines(r, out);
    attr_lines(host, r, out);
    time_lines(r, out);
    turn_lines(r, out);
    text_line(out, "conda", r->conda && r->conda[0] ? r->conda : NULL);
    text_line(out, "env-setup", r->env_setup && r->env_setup[0] ? r->env_setup : NULL);
    text_line(out, "chdir", r->chdir);
    for (char *const *entry = r->env; entry && *entry; entry++)
        text_line(out, "env", *entry);
    attr_lines(texts, r, out);
    for (size_t i = 0; (a = attr_at(i)); i++)
        if (a->apart)
            attr_line(a, r, out);
    attr_lines(last, r, out);
    hook_lines(r->hooks, out);
}
