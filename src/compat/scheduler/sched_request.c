/* Builds the request of a job of the drop-in schedulers: a share of a GPU or whole GPUs, the
 * thresholds, and our wrapper around the script (sched_job.c). */
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "compat/engine/compat_paths.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"
#include "spec/attr.h"

#define LINE_MAX_BYTES ((size_t)64 << 10)

static bool
is_whole(const struct sched *s, double need)
{
    return need > 1 + s->config.precision || need >= 0.995;
}

int
sched_cards_needed(const struct sched *s, double need)
{
    return need > 1 + s->config.precision ? (int)ceil(need - 1e-9) : 1;
}

/* Among equal jobs, the tolerance lets more share a GPU, so the share is at most 1/n of it. */
static int32_t
permille_of(const struct sched *s, double need)
{
    int32_t own = (int32_t)lround(need * 1000);
    int32_t most = (int32_t)(1000 / floor((1 + s->config.precision) / need + 1e-9));

    own = own < most ? own : most;
    return own > 0 ? own : 1;
}

static int32_t
guard_of(double threshold)
{
    if (!(threshold <= 1))
        return 0;
    return threshold > 0.001 ? (int32_t)lround(threshold * 1000) : 1;
}

uint64_t
sched_devices(const struct sched *s, const struct sched_job *job)
{
    return s->managed & (job->spec.allowed ? job->spec.allowed : UINT64_MAX);
}

static void
fill_demand(const struct sched *s, const struct sched_job *job, struct demand *d)
{
    d->gpus = sched_cards_needed(s, job->spec.need);
    if (!is_whole(s, job->spec.need))
        d->share_permille = permille_of(s, job->spec.need);
    d->devices = sched_devices(s, job) & ~s->paused_alone;
    d->max_used_permille = guard_of(s->config.mem_threshold);
    d->max_load_permille = guard_of(s->config.load_threshold);
    d->idle_mib = VRAM_MAX_MIB; /* the thresholds deal with foreign processes */
    d->placement = s->config.is_10x ? PLACING_SPREAD : PLACING_FIRST;
}

/* One word of a command line is limited to 128 KiB. */
static size_t
shown_bytes(const char *line)
{
    size_t n = strlen(line);

    if (n <= LINE_MAX_BYTES)
        return n;
    for (n = LINE_MAX_BYTES; n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

static char **
command_of(const struct sched *s, const struct sched_job *job)
{
    const struct sched_config *c = &s->config;
    const struct sched_spec *spec = &job->spec;
    size_t n = 0, at = 0;

    while (spec->args[n])
        n++;

    char **argv = xcalloc(n + 16, sizeof *argv);

    argv[at++] = xstrdup(s->berth);
    argv[at++] = xstrdup("compat");
    argv[at++] = xstrdup("scheduler-job");
    argv[at++] = xasprintf("--need=%.4g", spec->need);
    argv[at++] = xasprintf("--hash=%.8s", spec->key);
    argv[at++] = xasprintf("--line=%.*s", (int)shown_bytes(spec->text), spec->text);
    if (spec->conda)
        argv[at++] = xasprintf("--conda=%s", spec->conda);
    if (c->cuda)
        argv[at++] = xstrdup(c->local_cuda ? "--cuda=local" : "--cuda=physical");
    if (c->screen) {
        argv[at++] = xstrdup("--screen");
        argv[at++] = xasprintf("--mode=%s", spec->mode); /* name of the session */
    }
    if (c->is_10x)
        argv[at++] = xasprintf("--memory-mib=%lld", (long long)c->mem_mib);
    for (char **path = c->allowed_paths; path && *path; path++) {
        argv = xrealloc(argv, (n + at + 16) * sizeof *argv);
        argv[at++] = xasprintf("--allowed=%s", *path);
    }
    argv[at++] = xstrdup("--");
    argv[at++] = xstrdup(spec->script);
    for (char **arg = spec->args; *arg; arg++)
        argv[at++] = xstrdup(*arg);
    argv[at] = NULL;
    return argv;
}

/* job_ID_STAMP.log, or a name after the screen session. All schedulers of the machine share
 * the folder and count jobs from 1, and output is appended: without the time, two projects
 * would write to the same file. */
static char *
log_of(const struct sched *s, const struct sched_job *job)
{
    auto_buf struct buf name = BUF_INIT;
    bool is_10x = s->config.is_10x, screen = s->config.screen;

    if (screen)
        buf_adds(&name, "output_%s_");
    else if (is_10x)
        buf_addf(&name, "output_gpujob_%%g_%s_%%j_", job->spec.mode);
    else
        buf_adds(&name, "job_%j_");
    py_add_time(&name, PY_STAMP, job->stamp_us);
    if (screen || is_10x) /* two projects may start in the same second */
        buf_addf(&name, "_%03d", (int)(job->stamp_us / 1000 % 1000));
    buf_adds(&name, screen && !is_10x ? ".typescript" : ".log");
    return compat_log_pattern(s->log_dir, buf_str(&name));
}

static int32_t
priority_of(const struct sched *s, const struct sched_job *job)
{
    int64_t p = job->spec.priority;

    if (p >= -PRIORITY_MIN)
        return PRIORITY_MIN;
    if (p < 0 && s->no_priority)
        return 0;
    return p <= -PRIORITY_MAX ? PRIORITY_MAX : (int32_t)-p;
}

void
sched_request_fill(const struct sched *s, const struct sched_job *job, struct request *r)
{
    auto_free char *script = xstrdup(job->spec.script);

    r->argv = command_of(s, job);
    r->name = xstrdup(basename(script));
    r->log = log_of(s, job);
    r->conda = xstrdup(job->spec.conda ? job->spec.conda : "");
    r->screen = s->config.screen;
    r->retries = s->config.retries;
    r->limit_ms = s->config.limit_ms;
    if (s->config.is_10x)
        r->grace_ms = s->config.stop_ms < GRACE_MAX_MS ? s->config.stop_ms : GRACE_MAX_MS;
    r->hold |= s->leaving;
    r->gpus_said = true;
    r->priority = priority_of(s, job);
    r->tags = xcalloc(2, sizeof *r->tags);
    r->tags[0] = xstrdup(s->tag);
    fill_demand(s, job, &r->demand);
}
