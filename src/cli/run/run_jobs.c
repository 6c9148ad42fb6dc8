/* The jobs that `berth run` tracks, by id. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/run/run_verb.h"
#include "cli/table/render.h"

static size_t
slot_of(const struct run_jobs *t, int64_t id)
{
    size_t i = (size_t)((uint64_t)id * 0x9E3779B97F4A7C15ULL) & (t->n_slots - 1);

    while (t->slots[i] && t->all[t->slots[i] - 1].id != id)
        i = (i + 1) & (t->n_slots - 1);
    return i;
}

static void
grow(struct run_jobs *t)
{
    t->cap = t->cap ? t->cap * 2 : 64;
    t->all = xrealloc(t->all, t->cap * sizeof *t->all);
    free(t->slots);
    t->n_slots = t->cap * 2;
    t->slots = xcalloc(t->n_slots, sizeof *t->slots);
    for (size_t i = 0; i < t->n; i++)
        t->slots[slot_of(t, t->all[i].id)] = (uint32_t)i + 1;
}

struct run_job *
run_jobs_find(struct run_jobs *t, int64_t id)
{
    uint32_t at = t->n_slots ? t->slots[slot_of(t, id)] : 0;

    return at ? &t->all[at - 1] : NULL;
}

struct run_job *
run_jobs_get(struct run_jobs *t, int64_t id)
{
    struct run_job *job = run_jobs_find(t, id);

    if (job)
        return job;
    if (t->n == t->cap || !t->all)
        grow(t);
    job = &t->all[t->n++];
    *job = (struct run_job){.id = id,
                            .state = "PENDING",
                            .synced = "",
                            .status = -1,
                            .synced_status = -1,
                            .util = -1};
    t->slots[slot_of(t, id)] = (uint32_t)t->n;
    return job;
}

void
run_jobs_set_state(struct run_job *job, const char *state)
{
    job->state = render_state_static(state);
}

void
run_jobs_free(struct run_jobs *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->all[i].command);
    free(t->all);
    free(t->slots);
    *t = (struct run_jobs){0};
}

static void
count_ended(const struct run_job *job, struct run_counts *c)
{
    const struct {
        const char *state;
        size_t *n;
    } by_state[] = {
        {"COMPLETED", &c->completed},   {"TIMEOUT", &c->timeout},
        {"CANCELLED", &c->cancelled},   {"OUT_OF_MEMORY", &c->oom},
        {"INFEASIBLE", &c->infeasible}, {"LOST", &c->lost},
    };
    size_t *n = &c->failed;

    for (size_t i = 0; i < sizeof by_state / sizeof by_state[0]; i++) {
        if (strcmp(job->state, by_state[i].state) == 0)
            n = by_state[i].n;
    }
    (*n)++;
    c->done++;
    c->before += job->before;
    /* A job that the user cancelled with `cancel` on its line is no failure. */
    if (!job->cancel && job->status > c->highest)
        c->highest = job->status;
}

/* True if the job counts in totals, which excludes jobs removed from the file before they
 * ran. */
static bool
is_counted(const struct run_job *job)
{
    return job->in_file || job->started;
}

void
run_jobs_count(const struct run_jobs *t, struct run_counts *out)
{
    *out = (struct run_counts){0};
    for (size_t i = 0; i < t->n; i++) {
        const struct run_job *job = &t->all[i];

        if (!is_counted(job))
            continue;
        out->total++;
        if (render_state_is_final(job->state))
            count_ended(job, out);
        else if (render_state_is_active(job->state))
            out->running++;
        else
            out->waiting++;
        out->held += strcmp(job->state, "HELD") == 0;
    }
}

static void
pass_over_ended(struct run_jobs *t)
{
    while (t->passed < t->n &&
           (!is_counted(&t->all[t->passed]) || render_state_is_final(t->all[t->passed].state)))
        t->passed++;
}

bool
run_jobs_have_ended(struct run_jobs *t)
{
    pass_over_ended(t);
    if (t->passed < t->n)
        return false;
    t->passed = 0; /* one of the jobs passed over may run again */
    pass_over_ended(t);
    return t->passed == t->n;
}
