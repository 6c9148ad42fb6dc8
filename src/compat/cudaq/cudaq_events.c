/* Handles the daemon's events of cudaq's jobs. For every job with an event, its present object
 * is fetched, so the result is the same whether we saw the event, were not running, or had
 * lost the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "compat/compat.h"
#include "compat/cudaq/cudaq.h"
#include "wire/client.h"

static void
take_end(struct cudaq *q, struct cq_job *job, const json_t *object)
{
    const char *state = answer_str(object, "state"), *text = answer_str(object, "text");
    int64_t sig = answer_int(object, "signal", 0);

    if (q->leaving && job->status == CQ_PENDING) /* removed from the queue by us, stays
                                                    pending */
        return;
    if (sig > 0 || json_is_integer(json_object_get(object, "exit_code"))) {
        job->exit_code = sig > 0 ? -sig : answer_int(object, "exit_code", 0);
        job->exit_known = true;
    }
    if (strncmp(text, "could not start", 15) == 0)
        (void)compat_say("[Warning] Job '%s' %s", job->command, text);
    cq_job_set(q, job,
               strcmp(state, "COMPLETED") == 0 ? CQ_COMPLETED
               : strcmp(state, "LOST") == 0    ? CQ_UNKNOWN
                                               : CQ_FAILED,
               answer_time_us(object, "ended"));
}

/* A short job has two events, but the object fetched after the first may already show its
 * end. */
static bool
is_end_noted(const struct cq_job *job, const json_t *object)
{
    return job->status > CQ_RUNNING && render_state_is_final(answer_str(object, "state")) &&
           answer_time_us(object, "started") == job->start_us;
}

void
cq_take_object(void *cudaq, void *cq_job, const json_t *object)
{
    struct cudaq *q = cudaq;
    struct cq_job *job = cq_job;
    const char *state = answer_str(object, "state"), *log = answer_str(object, "log");
    size_t n = strlen(q->log_root);

    if (strcmp(answer_str(object, "key"), job->key) != 0 || is_end_noted(job, object))
        return;
    job->unsure = false;
    job->exit_known = false;
    if (!render_state_is_final(state) && !render_state_is_active(state)) {
        cq_job_set(q, job, CQ_PENDING, 0);
        return;
    }
    job->start_us = answer_time_us(object, "started");
    if (job->start_us) {
        job->gpu = answer_int(json_array_get(json_object_get(object, "gpus"), 0), "index", -1);
        job->pid = answer_int(object, "pid", job->pid);
        free(job->log);
        job->log =
            xstrdup(strncmp(log, q->log_root, n) == 0 && log[n] == '/' ? log + n + 1 : log);
        cq_job_set(q, job, CQ_RUNNING, job->start_us);
    }
    if (render_state_is_final(state))
        take_end(q, job, object);
}

/* Starts in this batch of events not yet reported, per GPU. */
struct starts {
    const json_t *gpus; /* the daemon's GPUs as they are now */
    int left[GPU_MAX];
};

static int64_t
card_of(const json_t *ev)
{
    int64_t card = json_integer_value(json_array_get(json_object_get(ev, "gpus"), 0));

    return strcmp(answer_str(ev, "kind"), "started") == 0 && card >= 0 && card < GPU_MAX ? card
                                                                                         : -1;
}

/* Estimate of the free memory before this start: what is free now, plus the memory of this job
 * and those of the batch started after it. */
static int64_t
free_before(const struct cudaq *q, struct starts *s, int64_t card)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(s->gpus, i, gpu)
    {
        int64_t free_mib = answer_int(gpu, "free_mib", 0),
                all = answer_int(gpu, "total_mib", 0);

        if (answer_int(gpu, "index", -1) != card)
            continue;
        free_mib += (int64_t)((double)s->left[card]-- * q->config.min_free_mib);
        return free_mib < all ? free_mib : all; /* some may have ended already */
    }
    return 0;
}

static void
say_started(struct cudaq *q, const struct cq_job *job, const json_t *ev, struct starts *s)
{
    int64_t card = card_of(ev);

    if (card < 0)
        return;
    (void)compat_say("[cudaq] Assigning job '%s' to GPU %lld (free memory ~ %lld MB).",
                     job->command, (long long)card, (long long)free_before(q, s, card));
    q->assigned = true;
}

static void
doubt_each(struct cudaq *q, const json_t *ids)
{
    size_t i;
    json_t *id;

    json_array_foreach(ids, i, id)
    {
        struct cq_job *job = compat_job_of(&q->session, json_integer_value(id));

        if (job)
            job->unsure = true;
    }
    q->sync_due = true;
}

/* Only events have the pid of an ended job, and its end may be noted before they are read. */
static void
take_pid(struct cudaq *q, struct cq_job *job, const json_t *ev)
{
    int64_t pid = answer_int(ev, "pid", job->pid);

    if (pid == job->pid)
        return;
    job->pid = pid;
    cq_job_changed(q, job);
}

void
cq_take_events(void *cudaq)
{
    struct cudaq *q = cudaq;
    auto_json json_t *events = compat_events(&q->session), *cards = NULL;
    struct starts s = {NULL, {0}};
    json_t *ids = json_array(), *ev;
    bool any = false;
    size_t i;

    json_array_foreach(events, i, ev)
    {
        int64_t card = compat_job_of(&q->session, answer_int(ev, "job", 0)) ? card_of(ev) : -1;

        any |= card >= 0;
        s.left[card >= 0 ? card : 0] += card >= 0;
    }
    if (any && compat_call(&q->session, "gpus", NULL, &cards, NULL) == 0)
        s.gpus = json_object_get(cards, "gpus");
    json_array_foreach(events, i, ev)
    {
        struct cq_job *job = compat_job_of(&q->session, answer_int(ev, "job", 0));

        if (!job)
            continue;
        /* We removed these pending jobs, perhaps thousands. Jobs that started are known, or
         * are in ids. */
        if (q->leaving && job->status == CQ_PENDING &&
            strcmp(answer_str(ev, "kind"), "ended") == 0)
            continue;
        say_started(q, job, ev, &s);
        take_pid(q, job, ev);
        json_array_append(ids, json_object_get(ev, "job"));
    }
    /* If the daemon is lost now, they are asked about again later. */
    if (compat_each(&q->session, json_incref(ids), NULL) < 0)
        doubt_each(q, ids);
    json_decref(ids);
}
