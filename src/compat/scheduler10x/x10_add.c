/* `scheduler_10x add`: submits a job with the running scheduler's rules, or adds a line to its
 * jobs file. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/request_write.h"
#include "cli/table/render.h"
#include "compat/compat.h"
#include "compat/engine/line_records.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"
#include "spec/attr.h"
#include "wire/client.h"

/* --- to the queue --- */

/* Take the rules from the scheduler's note, to submit a job on its behalf. */
static void
take_rules(struct sched *s, const json_t *about)
{
    const json_t *paths = json_object_get(about, "allowed_paths");
    int n = (int)answer_int(about, "n_gpus", 1);

    s->config = (struct sched_config){
        .is_10x = true,
        .screen = answer_bool(about, "screen"),
        .mem_threshold = json_number_value(json_object_get(about, "mem_threshold")),
        .load_threshold = json_number_value(json_object_get(about, "load_threshold")),
        .precision = json_number_value(json_object_get(about, "precision")),
        .limit_ms = answer_int(about, "limit_ms", 0),
        .mem_mib = answer_int(about, "mem_mib", 0),
        .stop_ms = answer_int(about, "stop_ms", GRACE_DEFAULT_MS),
        .retries = (int)answer_int(about, "retries", 0),
        .allowed_paths = xcalloc(json_array_size(paths) + 1, sizeof(char *)),
    };
    for (size_t i = 0; i < json_array_size(paths); i++)
        s->config.allowed_paths[i] = xstrdup(json_string_value(json_array_get(paths, i)));
    s->managed = n >= GPU_MAX ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    s->tag = xstrdup(answer_str(about, "tag"));
    s->berth = xstrdup(answer_str(about, "self"));
}

static void
drop_rules(struct sched *s)
{
    text_list_free(s->config.allowed_paths);
    sched_free(s);
}

static int
read_job(struct sched *s, const struct x10_job *in, struct sched_spec *spec, struct buf *why)
{
    const struct sched_rules rules = {&s->table, 64 - __builtin_clzll(s->managed), true};

    spec->priority = in->priority;
    spec->script = xstrdup(in->script);
    if (in->conda && *in->conda)
        spec->conda = xstrdup(in->conda);
    spec->args = sched_split(in->args ? in->args : "", why);
    if (!spec->args)
        return -1;
    if (in->gpus && *in->gpus &&
        (!sched_gpus_read(in->gpus, &rules, &spec->allowed, why) || spec->allowed == 0)) {
        if (why->len == 0)
            buf_addf(why, "no GPU of '%s' is managed here", in->gpus);
        return -1;
    }
    buf_clear(why);
    if (!sched_script_allowed(s->config.allowed_paths, in->script, why))
        return -1;
    spec->text = xstrdup(in->script);
    sched_spec_finish(spec, &s->table);
    return 0;
}

static int
check_room(const struct x10 *x, struct err *e)
{
    int64_t most = answer_int(x->about, "queue_max", 0), n = 0;
    auto_json json_t *jobs = x10_live_jobs(x, e);
    size_t i;
    json_t *job;

    if (!jobs)
        return -1;
    json_array_foreach(jobs, i, job) n += !render_state_is_active(answer_str(job, "state"));
    if (most > 0 && n >= most)
        return err_set(e, ERR_REFUSED, "the queue is full: %lld jobs wait, of %lld that may",
                       (long long)n, (long long)most);
    return 0;
}

static int
submit(const struct x10 *x, const struct request *r, int64_t *id, struct err *e)
{
    auto_free char *cwd = jobreq_current_folder(e);
    auto_buf struct buf params = BUF_INIT;
    auto_json json_t *result = NULL;
    struct jsonw w;

    if (!cwd)
        return -1;
    jsonw_init(&w, &params);
    jsonw_object(&w);
    jsonw_key(&w, "jobs");
    jsonw_array(&w);
    jsonw_object(&w);
    jobreq_add_fields(&w, r);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jobreq_add_context(&w, cwd, NULL);
    jsonw_end_object(&w);
    if (client_call_text(x->client, "submit", params.data, params.len, &result, e) < 0)
        return -1;
    *id = json_integer_value(json_array_get(json_object_get(result, "ids"), 0));
    return 0;
}

/* Check here, since the daemon's message would mean nothing to users of this command. */
static int
check_need(const struct sched *s, const struct sched_job *job, struct err *e)
{
    int needed = sched_cards_needed(s, job->spec.need);
    int n = __builtin_popcountll(sched_devices(s, job));

    return needed > n ? err_set(e, ERR_REFUSED, "it needs %d GPUs, and may use %d", needed, n)
                      : 0;
}

static int
hand_over(const struct x10 *x, struct sched *s, struct sched_job *job, int64_t *id,
          struct err *e)
{
    uint64_t open = sched_devices(s, job) & ~s->paused_alone;
    struct request r;
    int rc;

    request_init(&r);
    r.hold = __builtin_popcountll(open) < sched_cards_needed(s, job->spec.need);
    if (r.hold) /* the scheduler will release it */
        s->paused_alone = 0;
    sched_request_fill(s, job, &r);
    rc = request_validate(&r, e);
    if (rc == 0)
        rc = submit(x, &r, id, e);
    /* On the machine's daemon not every user may raise priorities. */
    if (rc < 0 && e->code == ERR_PERMISSION && r.priority > 0) {
        r.priority = 0;
        rc = submit(x, &r, id, e);
    }
    request_free(&r);
    return rc;
}

/* Serialise concurrent `add`s, which must not take the same room, and changes of paused
 * GPUs. */
static int
enter(const struct x10 *x, struct sched *s, struct sched_job *job, int64_t *id, struct err *e)
{
    auto_close int lock = sched_state_lock(x->state_file, e);
    auto_json json_t *about = sched_owner(x->state_file);

    if (lock >= 0 && !about)
        return err_set(e, ERR_REFUSED, "the scheduler has stopped");
    s->paused_alone = (uint64_t)answer_int(about, "paused_alone", 0);
    return lock < 0 || check_room(x, e) < 0 ? -1 : hand_over(x, s, job, id, e);
}

static int
add_to_queue(const struct x10 *x, const struct x10_job *in)
{
    struct sched s = {.session = {.signals = -1}};
    struct sched_job job = {.stamp_us = clock_wall_us()};
    auto_buf struct buf why = BUF_INIT;
    struct err e = {0};
    int64_t id = 0;
    int rc;

    take_rules(&s, x->about);
    (void)sched_table_load(&s.table, answer_str(x->about, "llm_file"), &why);
    buf_clear(&why);
    s.log_dir = sched_log_dir(&e);
    rc = s.log_dir ? read_job(&s, in, &job.spec, &why) : -1;
    if (rc < 0 && why.len)
        err_set(&e, ERR_FAILED, "%s", buf_str(&why));
    if (rc == 0)
        rc = check_need(&s, &job, &e);
    if (rc == 0)
        rc = enter(x, &s, &job, &id, &e);
    sched_spec_free(&job.spec);
    drop_rules(&s);
    if (rc < 0)
        return x10_fail("Failed to add job: %s", e.text);
    return compat_say("✅ Job added with ID: %lld", (long long)id);
}

/* --- to the file --- */

static int
add_to_file(const struct x10 *x, const struct x10_job *in)
{
    const char *path = x->about ? answer_str(x->about, "jobs_file") : x->jobs_file;
    const char *const fields[] = {in->conda, in->args, in->gpus};
    auto_free char *script = x10_whole_path(in->script);
    auto_buf struct buf line = BUF_INIT;
    struct err e = {0};

    if (!*path)
        return x10_fail("Failed to add job: the scheduler follows no jobs file; "
                        "'--output queue' hands the job to it");
    if (sched_line_add(&line, in->priority, script, fields, &e) < 0)
        return x10_fail(
            "Failed to add job: %s; '--output queue' hands the job to the scheduler", e.text);
    if (records_append(path, &line, false, &e) < 0)
        return x10_fail("Failed to add job: cannot write %s", e.text);
    return compat_say("✅ Job added to %s", path);
}

int
x10_add(const struct x10 *x, const struct x10_job *job)
{
    if (!*job->script)
        return x10_fail("Failed to add job: it has no script");
    if (strcmp(job->output, "file") == 0)
        return add_to_file(x, job);
    return x->client ? add_to_queue(x, job) : x10_nobody(x, "Failed to add job");
}
