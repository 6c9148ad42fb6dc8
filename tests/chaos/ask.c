/* Requests of users. */
#include <stdlib.h>
#include <string.h>

#include "base/counted_text.h"
#include "base/err.h"
#include "core/place/place.h"
#include "daemon/state/estimates.h"
#include "daemon/state/job_facts.h"
#include "store/store.h"
#include "world.h"

static void
draw_cards(struct world *w, struct demand *d)
{
    if (chance(w, 20))
        d->gpus = 1 + (int32_t)draw(w, (uint64_t)w->n_cards);
    if (chance(w, 10))
        d->devices = 1 + draw(w, (UINT64_C(1) << w->n_cards) - 1);
    if (w->n_cards > 1 && chance(w, 5)) {
        d->n_ids = 2;
        d->ids[0] = (uint8_t)draw(w, (uint64_t)w->n_cards);
        d->ids[1] = (uint8_t)((d->ids[0] + 1) % w->n_cards);
        d->gpus = 2;
        d->devices = 0;
    }
}

static struct demand
draw_demand(struct world *w)
{
    static const int32_t sizes[] = {0, 0, 500, 2000, 6000, 8000, 10000, 14336, 20000, 60000};
    struct demand d;
    demand_init(&d);
    d.vram_mib = sizes[draw(w, 10)];
    draw_cards(w, &d);
    if (chance(w, 20))
        d.share_permille = 100 * (1 + (int32_t)draw(w, 10));
    if (chance(w, 10))
        d.exclusive = 1;
    if (!w->calm && chance(w, 10))
        d.max_used_permille = 500;
    if (chance(w, 10))
        d.min_vram_mib = 24000;
    if (chance(w, 10))
        d.min_cc = 90;
    if (chance(w, 20))
        d.cpu_bind = (uint8_t)draw(w, 4);
    if (chance(w, 20))
        d.cpus = (int32_t)draw(w, CPUS + 2);
    if (chance(w, 20))
        d.mem_mib = (int32_t)draw(w, MEM_MIB + MEM_MIB / 10);
    return d;
}

static void
draw_times(struct world *w, struct request *r)
{
    if (w->calm || chance(w, 50))
        r->limit_ms = 1000 * (1 + (int64_t)draw(w, 600));
    if (w->calm)
        return;
    if (chance(w, 5))
        r->begin_us = w->now_us + (int64_t)draw(w, 300 * SECOND_US);
    if (chance(w, 10))
        r->on_timeout = ON_TIMEOUT_REQUEUE;
}

/* Dependencies on earlier jobs, ended or not. */
static void
draw_deps(struct world *w, struct request *r, uint32_t self)
{
    int n = 1 + (int)draw(w, 3);
    if (self == 1)
        return;
    r->deps = xcalloc((size_t)n, sizeof *r->deps);
    for (int i = 0; i < n; i++) {
        struct dep *dep = &r->deps[r->n_deps];
        *dep = (struct dep){.type = (enum dep_type)draw(w, 3),
                            .job = 1 + (uint32_t)draw(w, self - 1),
                            .task = -1};
        const struct known *p = past_of(w, dep->job);
        bool is_known = queue_get(w->q, dep->job) || p->ended;
        if (!is_known)
            continue; /* a number that was never given out, or was rolled back */
        r->n_deps++;
    }
}

static struct job *
draw_job(struct world *w)
{
    struct job *job = job_new();
    uint32_t id = store_next_job_id(w->store);
    struct known *p = past_of(w, id);
    memset(p, 0, sizeof *p);
    job->id = id;
    w->next_id = id + 1;
    job->uid = (uint32_t)draw(w, w->calm ? 1 : USERS);
    job->task = -1;
    job->order = store_next_order(w->store);
    job->submitted_us = w->now_us;
    job->req.demand = draw_demand(w);
    job->declared_mib = job->req.demand.vram_mib;
    job->req.command = xasprintf("train %d", (int)draw(w, 5));
    job->cwd = shared_new("/");
    draw_times(w, &job->req);
    job->begin_us = job->req.begin_us;
    job->req.oom_retries = 0;
    if (w->calm)
        return job;
    job->req.priority = (int32_t)draw(w, 3) - 1;
    job->req.preemptible = chance(w, 20);
    /* With a VRAM limit, a demand grown by retries might exceed it and wait until the limit is
     * raised. */
    job->req.oom_retries = w->limits.each.vram_mib ? 0 : (int32_t)draw(w, 3);
    job->req.retries = (int32_t)draw(w, 3);
    job->req.requeue = chance(w, 50);
    if (chance(w, 5))
        job->state = JOB_HELD;
    if (chance(w, 10))
        draw_deps(w, &job->req, job->id);
    return job;
}

/* The daemon refuses a job at submission if it exceeds the empty machine or the user's
 * limits. */
static bool
is_feasible(struct world *w, const struct job *job)
{
    const struct demand *d = &job->req.demand;
    const struct limit *most = &w->limits.each;
    int64_t n = d->n_ids ? d->n_ids : d->gpus, largest = 0;
    for (int i = 0; i < w->n_cards; i++)
        largest = w->total_mib[i] > largest ? w->total_mib[i] : largest;
    if ((most->gpus && n > most->gpus) ||
        (most->vram_mib && n * (d->vram_mib ? d->vram_mib : largest) > most->vram_mib))
        return false;
    return place_feasible(d, w->l, NULL);
}

static void
accept(struct world *w, struct job *job)
{
    world_say(w, "job %u of user %u is submitted: %d GPUs, %d MiB, share %d, limit %lld s",
              job->id, job->uid, job->req.demand.gpus, job->req.demand.vram_mib,
              job->req.demand.share_permille, (long long)job->req.limit_ms / 1000);
    world_add(w, job);
}

void
ask_submit(struct world *w)
{
    if (queue_n(w->q) >= LIVE_MAX)
        return;
    struct job *job = draw_job(w);
    if (is_feasible(w, job))
        accept(w, job);
    else
        job_free(job);
}

void
ask_array(struct world *w)
{
    if (queue_n(w->q) >= LIVE_MAX)
        return;
    struct job *job = draw_job(w);
    int32_t first = (int32_t)draw(w, 5), last = first + (int32_t)draw(w, 12);
    if (!is_feasible(w, job)) {
        job_free(job);
        return;
    }
    job->req.array.ranges = xcalloc(1, sizeof *job->req.array.ranges);
    job->req.array.ranges[0] = (struct task_range){first, last};
    job->req.array.n = 1;
    /* Not in a calm world: a freed slot under such a bound acts like a new job of higher
     * rank. */
    job->req.array_max = !w->calm && chance(w, 50) ? 1 + (int32_t)draw(w, 4) : 0;
    world_say(w, "an array of tasks %d to %d, %d at once:", first, last, job->req.array_max);
    accept(w, job);
}

/* Edits a pending job. */
void
ask_change(struct world *w)
{
    struct job *job = world_any_job(w);
    if (!job || (job->state != JOB_PENDING && job->state != JOB_HELD))
        return;
    switch (draw(w, 4)) {
    case 0:
        job->req.priority = (int32_t)draw(w, 5) - 2;
        break;
    case 1: {
        struct demand before = job->req.demand;
        job->req.demand = draw_demand(w);
        if (!is_feasible(w, job))
            job->req.demand = before;
        job->declared_mib = job->req.demand.vram_mib;
        break;
    }
    case 2:
        job->req.limit_ms = 1000 * (1 + (int64_t)draw(w, 600));
        estimate_refresh(&w->s, job);
        break;
    default:
        job->order = 1 + draw(w, store_next_order(w->store));
        break;
    }
    world_say(w, "job %u is edited", job->id);
    queue_refile(w->q, job);
    state_save(&w->s, job, SAVE_JOB);
}

void
ask_event(struct world *w)
{
    struct job *job = world_any_job(w);
    struct err e;
    if (!job)
        return;
    uint64_t what = draw(w, 6);
    bool hold = draw(w, 2);
    world_say(w, "wish %d for job %u (%s)", (int)what, job->id, job_state_name(job->state));
    if (what == 0)
        jobs_hold(&w->s, job, &e);
    else if (what == 1 || what == 2)
        jobs_release(&w->s, job, &e);
    else if (what == 3) {
        jobs_set_stop_grace(&w->s, job, (int64_t)draw(w, 3) - 1);
        jobs_cancel(&w->s, job, "somebody");
    } else if (what == 4)
        jobs_attempt_started(&w->s, job, w->now_us);
    else
        jobs_requeue(&w->s, job, "somebody", hold, &e);
}
