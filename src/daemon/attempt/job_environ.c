/* The environment of a job: see job_environ.h; the design lists the variables under "What the
 * job sees". The submitter's environment comes from the store as a block of NUL-terminated
 * K=V. Our variables replace the submitter's of the same name, except for those
 * of job_environ_defaults.c. */
#include "daemon/attempt/job_environ.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "core/ledger/ledger.h"
#include "core/queue/array.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/env_block.h"
#include "daemon/attempt/job_environ_cards.h"
#include "daemon/attempt/job_environ_defaults.h"
#include "daemon/attempt/job_environ_slurm.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/log_names.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "store/store.h"

static void
put_sharing(const struct job *job, struct buf *out)
{
    const struct demand *demand = &job->req.demand;
    if (demand->share_permille > 0) {
        buf_addzf(out, "BERTH_GPU_SHARE=%g", demand->share_permille / 1000.0);
    } else {
        envblock_put(out, "BERTH_GPU_SHARE",
                     job->run->n_gpus && demand_is_whole(demand) ? "1" : "");
    }
}

static void
put_array(const struct instance *inst, const struct job *job, struct buf *out)
{
    const struct job *array = job->array ? queue_get(inst->queue, job->array) : NULL;
    if (!job->array)
        return;
    envblock_put_int(out, "BERTH_ARRAY_JOB_ID", job->array);
    envblock_put_int(out, "BERTH_ARRAY_TASK_ID", job->task);
    if (array && array->tasks)
        envblock_put_int(out, "BERTH_ARRAY_TASK_COUNT", array->tasks->total);
}

static void
put_ours(const struct attempts *a, const struct job *job, const char *mark, struct buf *out)
{
    const struct attempt *run = job->run;
    environ_put_cards(a, job, out);
    put_sharing(job, out);
    mps_put(a->inst, job, out);
    put_array(a->inst, job, out);
    envblock_put(out, "BERTH_MARK", mark);
    envblock_put_int(out, "BERTH_JOB_ID", job->id);
    envblock_put(out, "BERTH_JOB_NAME", job->req.name ? job->req.name : "");
    envblock_put(out, "BERTH_USER", daemon_owner_name(job));
    envblock_put(out, "BERTH_SUBMIT_DIR", job->cwd);
    envblock_put_int(out, "BERTH_VRAM_MIB", run->vram_mib);
    if (run->cap_mib > 0)
        envblock_put_int(out, "BERTH_VRAM_CAP_MIB", run->cap_mib);
    envblock_put_int(out, "BERTH_CPUS", demand_cpus(&job->req.demand));
    envblock_put_int(out, "BERTH_MEM_MIB", job->req.demand.mem_mib);
    envblock_put_int(out, "BERTH_ATTEMPT", run->number);
    envblock_put(out, "BERTH_SOCKET", a->inst->places.socket);
    if (job->req.limit_ms > 0)
        envblock_put_int(out, "BERTH_END_TIME",
                         (clock_wall_us() + job->req.limit_ms * 1000) / 1000000);
    if (a->cards->sim_dir)
        envblock_put(out, "BERTH_SIM_DIR", a->cards->sim_dir);
}

static bool
is_ours(const struct buf *ours, const char *var, size_t name_len)
{
    for (const char *p = ours->data; p < ours->data + ours->len; p += strlen(p) + 1)
        if (p[0] == var[0] && strncmp(p, var, name_len + 1) == 0)
            return true;
    return false;
}

/* True for variables that may stem from the job from which this one was submitted, and would
 * be wrong here. */
static bool
is_stale(const char *var)
{
    static const char *const prefixes[] = {
        "BERTH_ARRAY_",        "BERTH_MARK=", "BERTH_END_TIME=", "BERTH_HOOK", "BERTH_EVENT",
        "BERTH_VRAM_CAP_MIB=", NULL};
    return text_begins_with(var, prefixes);
}

/* Appends the submitter's variables, without those that are ours or stale or would hide GPUs,
 * then ours. Returns how many come from the first n_captured bytes. */
static int
merge(const struct instance *inst, const struct buf *theirs, size_t n_captured,
      const struct buf *ours, struct buf *out)
{
    int captured = 0;
    const char *end = theirs->data + theirs->len;
    for (const char *p = theirs->data; p && p < end;) {
        size_t n = strlen(p) + 1;
        const char *eq = memchr(p, '=', n);
        if (eq && !is_stale(p) && !is_ours(ours, p, (size_t)(eq - p)) &&
            !environ_was_default(theirs, p) && !mps_is_stale(inst, theirs, p) &&
            !environ_hides_cards(inst, p)) {
            buf_add(out, p, n);
            captured += p < theirs->data + n_captured;
        }
        p += n;
    }
    buf_add(out, ours->data, ours->len);
    return captured;
}

static bool
is_among(char *const *said, const char *var, size_t name_len)
{
    for (; said && *said; said++)
        if (strncmp(*said, var, name_len + 1) == 0)
            return true;
    return false;
}

/* Reads the captured variables, *n_captured bytes, followed by those set in the job's request,
 * which replace captured ones of the same name. */
static int
read_theirs(struct instance *inst, const struct job *job, struct buf *theirs,
            size_t *n_captured, struct err *e)
{
    auto_buf struct buf captured = BUF_INIT;
    if (job->env && store_env_get(inst->store, job->env, &captured, e) < 0)
        return -1;
    const char *end = captured.data + captured.len;
    for (const char *p = captured.data; p && p < end; p += strlen(p) + 1)
        if (!is_among(job->req.env, p, strcspn(p, "=")))
            environ_add_captured(job, &captured, p, theirs);
    *n_captured = theirs->len;
    for (char *const *own = job->req.env; own && *own; own++)
        buf_addz(theirs, *own);
    return 0;
}

int
environ_add(struct attempts *a, const struct job *job, const char *mark, struct buf *out,
            int *captured, struct err *e)
{
    auto_buf struct buf ours = BUF_INIT, theirs = BUF_INIT;
    size_t n_captured = 0;
    if (read_theirs(a->inst, job, &theirs, &n_captured, e) < 0)
        return -1;
    put_ours(a, job, mark, &ours);
    environ_add_slurm(a->inst, job, &theirs, &ours);
    environ_add_defaults(a->inst, job, &theirs, &ours);
    *captured = merge(a->inst, &theirs, n_captured, &ours, out);
    return 0;
}

/* --- hooks --- */

static void
put_event(const json_t *event, const char *key, const char *name, struct buf *out)
{
    const json_t *v = json_object_get(event, key);
    if (json_is_integer(v))
        envblock_put_int(out, name, json_integer_value(v));
    else if (json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v))
        envblock_put(out, name, json_string_value(v));
    else
        envblock_put(out, name, "");
}

/* HOME, USER, LOGNAME and SHELL of the service account are added when it is looked
 * up (shepherd/nursery/deliver.c). */
static void
put_clean(struct buf *out)
{
    static const char *const passed[] = {"http_proxy",  "https_proxy", "all_proxy", "no_proxy",
                                         "HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY",  "LANG"};
    envblock_put(out, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        const char *value = getenv(passed[i]);
        if (value)
            envblock_put(out, passed[i], value);
    }
}

int
environ_add_hook(struct attempts *a, const struct hook_environ *x, struct buf *out,
                 struct err *e)
{
    const struct job *job = x->job;
    auto_buf struct buf ours = BUF_INIT, theirs = BUF_INIT;
    size_t n_captured = 0;
    if (!x->apart && read_theirs(a->inst, job, &theirs, &n_captured, e) < 0)
        return -1;
    auto_free char *log = launch_log_path(a->inst, job);
    json_t *event = json_loads(x->line, 0, NULL);
    environ_put_no_cards(a, &ours);
    put_array(a->inst, job, &ours);
    envblock_put(&ours, "BERTH_HOOK", x->hook);
    put_event(event, "kind", "BERTH_EVENT", &ours);
    put_event(event, "seq", "BERTH_EVENT_SEQ", &ours);
    envblock_put_int(&ours, "BERTH_JOB_ID", job->id);
    envblock_put(&ours, "BERTH_JOB_NAME", job->req.name ? job->req.name : "");
    put_event(event, "state", "BERTH_JOB_STATE", &ours);
    put_event(event, "exit_status", "BERTH_EXIT_STATUS", &ours);
    put_event(event, "text", "BERTH_JOB_TEXT", &ours);
    put_event(event, "run_ms", "BERTH_RUN_MS", &ours);
    put_event(event, "attempt", "BERTH_ATTEMPT", &ours);
    envblock_put(&ours, "BERTH_JOB_LOG", log);
    envblock_put(&ours, "BERTH_USER", daemon_owner_name(job));
    envblock_put(&ours, "BERTH_SUBMIT_DIR", job->cwd);
    envblock_put(&ours, "BERTH_SOCKET", a->inst->places.socket);
    json_decref(event);
    if (x->apart) {
        put_clean(out);
        buf_add(out, ours.data, ours.len);
        return 0;
    }
    (void)merge(a->inst, &theirs, n_captured, &ours, out);
    return 0;
}
