/* What the daemon tells of cudaq's jobs: they start on a card, run as a process, end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/cudaq/cudaq.h"
#include "cli/compat/pytext.h"
#include "cli/render.h"
#include "sys/procs.h"
#include "wire/client.h"

struct starts {
    const json_t *gpus; /* the daemon's cards as they are now */
    int left[GPU_MAX];  /* starts of this batch on a card that are not told yet */
};

/* What was free before it, as far as this batch goes: what is left now and what the jobs that
 * came with it and after it were given. */
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
        return free_mib < all ? free_mib : all; /* some of them may have ended already */
    }
    return 0;
}

static void
say_assigned(struct cudaq *q, const struct cq_job *job, struct starts *s)
{
    auto_buf struct buf out = BUF_INIT;
    int64_t mib = job->gpu >= 0 && job->gpu < GPU_MAX ? free_before(q, s, job->gpu) : 0;

    buf_addf(&out, "[cudaq] Assigning job '%s' to GPU %lld (free memory ~ %lld MB).\n",
             job->command, (long long)job->gpu, (long long)mib);
    (void)cli_put(&out);
}

static void
on_started(struct cudaq *q, struct cq_job *job, const json_t *ev, struct starts *s)
{
    job->gpu = json_integer_value(json_array_get(json_object_get(ev, "gpus"), 0));
    job->start_us = answer_int(ev, "at_us", clock_wall_us());
    job->pid = 0;
    job->exit_known = false;
    q->assigned = true;
    cq_job_set(q, job, CQ_RUNNING);
    say_assigned(q, job, s);
}

static void
say_could_not(const struct cq_job *job, const char *why)
{
    auto_buf struct buf out = BUF_INIT;

    buf_addf(&out, "[Warning] Job '%s' %s\n", job->command, why);
    (void)cli_put(&out);
}

static void
on_ended(struct cudaq *q, struct cq_job *job, const json_t *ev)
{
    bool ran = job->status == CQ_RUNNING;

    /* Whose record was taken out, and who waits when the dispatcher is stopped, is not over. */
    if (!ran && (q->leaving || !job->in_file || job->status != CQ_PENDING))
        return;
    cq_take_exit(job, ev);
    if (strncmp(answer_str(ev, "text"), "could not start", 15) == 0)
        say_could_not(job, answer_str(ev, "text"));
    cq_job_set(q, job,
               strcmp(answer_str(ev, "state"), "COMPLETED") == 0 ? CQ_COMPLETED : CQ_FAILED);
}

static void
take_event(struct cudaq *q, const json_t *ev, struct starts *s)
{
    const char *kind = answer_str(ev, "kind");
    struct cq_job *job = compat_job_of(&q->session, answer_int(ev, "job", 0));

    if (!job)
        return;
    if (strcmp(kind, "started") == 0) {
        on_started(q, job, ev, s);
    } else if (strcmp(kind, "launched") == 0 && job->status == CQ_RUNNING) {
        job->pid = answer_int(ev, "pid", 0);
        cq_job_set(q, job, CQ_RUNNING);
    } else if (strcmp(kind, "requeued") == 0) {
        cq_job_set(q, job, CQ_PENDING);
    } else if (strcmp(kind, "ended") == 0) {
        on_ended(q, job, ev);
    }
}

static int
count_starts(const json_t *events, struct starts *s)
{
    int n = 0;
    size_t i;
    json_t *ev;

    json_array_foreach(events, i, ev)
    {
        int64_t card = json_integer_value(json_array_get(json_object_get(ev, "gpus"), 0));

        if (strcmp(answer_str(ev, "kind"), "started") != 0 || card < 0 || card >= GPU_MAX)
            continue;
        s->left[card]++;
        n++;
    }
    return n;
}

void
cq_take_events(void *cudaq)
{
    struct cudaq *q = cudaq;
    struct starts s = {NULL, {0}};
    auto_json json_t *result = NULL, *events = compat_events(&q->session);
    size_t i;
    json_t *ev;

    if (count_starts(events, &s) > 0 &&
        compat_call(&q->session, "gpus", NULL, &result, NULL) == 0)
        s.gpus = json_object_get(result, "gpus");
    json_array_foreach(events, i, ev) take_event(q, ev, &s);
}
