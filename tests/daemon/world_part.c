/* The one part of a daemon_world.h's turn; see world_part.h. */
#include "world_part.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "store/store.h"

#define LONGEST 64 /* maximum length of the text of one change or step */

/* --- what changed --- */

static const char *
word_of(enum change_type type)
{
    static const char *const words[] = {
        [CHANGE_SAID] = "said",         [CHANGE_ENTERED] = "entered",
        [CHANGE_STARTED] = "started",   [CHANGE_ENDED] = "ended",
        [CHANGE_RETRIED] = "retried",   [CHANGE_BACK] = "back",
        [CHANGE_HELD] = "held",         [CHANGE_RELEASED] = "released",
        [CHANGE_UPDATED] = "updated",   [CHANGE_PRIORITY] = "priority",
        [CHANGE_CANCEL] = "cancel",     [CHANGE_REQUEUE] = "requeue",
        [CHANGE_PREEMPT] = "preempt",   [CHANGE_CANCEL_MORE] = "cancel-more",
        [CHANGE_AWAITED] = "awaited",   [CHANGE_DROPPED] = "dropped",
        [CHANGE_LAUNCHED] = "launched", [CHANGE_DELAYED] = "delayed",
    };
    return words[type];
}

static void
tell(struct world *w, const struct change *x)
{
    size_t len = strlen(w->told);
    assert_true(len + LONGEST < sizeof w->told);
    snprintf(w->told + len, sizeof w->told - len, "%s%s %u", len ? ", " : "", word_of(x->type),
             x->job);
    len = strlen(w->told);
    if (x->type == CHANGE_ENDED)
        snprintf(w->told + len, sizeof w->told - len, " %s", job_state_name(x->state));
    if (x->type == CHANGE_DROPPED)
        snprintf(w->told + len, sizeof w->told - len, " %d", x->number);
}

void
world_read(struct world *w)
{
    const struct changes *c = &w->s.changes;
    for (; w->n_told < c->n; w->n_told++)
        tell(w, &c->list[w->n_told]);
}

/* --- the part --- */

void
world_step(struct world *w, const char *form, ...)
{
    va_list args;
    size_t len = strlen(w->steps);
    assert_true(len + LONGEST < sizeof w->steps);
    if (len > 0)
        len += (size_t)snprintf(w->steps + len, sizeof w->steps - len, ", ");
    va_start(args, form);
    vsnprintf(w->steps + len, sizeof w->steps - len, form, args);
    va_end(args);
    if (++w->n_steps == w->dies_at)
        longjmp(w->died, 1);
}

static void
may_die(struct world *w, enum death here)
{
    if (w->death == here)
        longjmp(w->died, 1);
}

/* Nothing may be announced or launched before it is durable. */
static void
must_be_durable(const struct world *w)
{
    assert_false(store_has_changes(w->store));
}

static void
on_settle(void *arg)
{
    world_step(arg, "settle");
}

static void
on_read(void *arg, struct change *x)
{
    struct world *w = arg;
    size_t i = (size_t)(x - w->s.changes.list);
    if (i >= w->n_told) {
        tell(w, x);
        w->n_told = i + 1;
    }
    world_step(w, "read %s %u", word_of(x->type), x->job);
    snprintf(x->kind, sizeof x->kind, "%s", word_of(x->type));
    buf_clear(&x->json);
    buf_adds(&x->json, "{}");
}

static bool
on_before_plan(void *arg)
{
    struct world *w = arg;
    world_step(w, "before_plan");
    return !w->plans_not;
}

static void
on_planned(void *arg, const struct plan *p, int64_t took_us)
{
    (void)took_us;
    world_step(arg, "planned %zu", p->n);
}

static bool
on_prepare_start(void *arg, struct job *job)
{
    struct world *w = arg;
    world_step(w, "prepare_start %u", job->id);
    return job->id != w->cannot_prepare;
}

static void
on_prepare(void *arg)
{
    world_step(arg, "prepare");
}

static void
on_write_job(void *arg, const struct job *job)
{
    world_step(arg, "write_job %u", job->id);
}

static void
note(struct world *w, enum change_type type)
{
    uint32_t newest = store_peek_job_id(w->store) - 1;
    state_note(&w->s, type, queue_get(w->s.queue, newest));
}

static void
on_write(void *arg)
{
    struct world *w = arg;
    world_step(w, "write");
    if (w->notes_at_write)
        note(w, CHANGE_HELD);
}

static void
on_write_event(void *arg, const struct change *x)
{
    assert_non_null(strstr(buf_str(&x->line), x->kind));
    world_step(arg, "write_event %s", x->kind);
}

static void
on_sum_up(void *arg, struct job *const *jobs, size_t n)
{
    struct world *w = arg;
    (void)jobs;
    world_step(w, "sum_up %zu", n);
    may_die(w, DEATH_BEFORE_COMMIT);
}

static void
on_measured(void *arg, int64_t took_us, const struct err *failed)
{
    (void)took_us;
    world_step(arg, "measured %s", failed ? "failed" : "well");
}

static void
on_start_undone(void *arg, const struct job *job)
{
    assert_int_equal(job->state, JOB_STARTING);
    world_step(arg, "start_undone %u", job->id);
}

static void
on_job_gone(void *arg, const struct job *job)
{
    world_step(arg, "job_gone %u", job->id);
}

static void
on_not_saved(void *arg, const struct err *why)
{
    assert_int_equal(why->code, ERR_NO_SPACE);
    world_step(arg, "not_saved");
}

static void
on_saved(void *arg)
{
    struct world *w = arg;
    must_be_durable(w);
    world_step(w, "saved");
    may_die(w, DEATH_AFTER_COMMIT);
}

static void
on_answer(void *arg, const struct err *failed)
{
    struct world *w = arg;
    if (!failed)
        must_be_durable(w);
    world_step(w, "answer %s", failed ? "refused" : "well");
}

static void
on_publish(void *arg, const struct change *list, size_t n)
{
    struct world *w = arg;
    must_be_durable(w);
    for (size_t i = 0; i < n; i++)
        world_step(w, "publish %s", list[i].kind);
    if (w->notes_at_publish)
        note(w, CHANGE_RELEASED);
    may_die(w, DEATH_AFTER_ANSWERS);
}

static void
on_tell_waiting(void *arg, const struct job *job)
{
    world_step(arg, "tell_waiting %u", job->id);
}

static void
on_launch(void *arg, struct job *job)
{
    struct world *w = arg;
    must_be_durable(w);
    world_step(w, "launch %u", job->id);
    w->launched[w->n_launched++] = job->id;
    if (job->id == w->cannot_launch)
        world_is_lost(w, job->id, OUTCOME_NEVER_RAN);
}

static void
on_act(void *arg, const struct job *job, unsigned what)
{
    struct world *w = arg;
    world_step(w, "act %u%s%s", job->id, what & SAVE_SETTLED ? " settled" : "",
               what & SAVE_ENDED ? " ended" : "");
}

static void
on_finish(void *arg)
{
    world_step(arg, "finish");
}

const struct turn_part world_part = {.name = "world",
                                     .settle = on_settle,
                                     .read = on_read,
                                     .before_plan = on_before_plan,
                                     .planned = on_planned,
                                     .prepare_start = on_prepare_start,
                                     .prepare = on_prepare,
                                     .write_job = on_write_job,
                                     .write = on_write,
                                     .write_event = on_write_event,
                                     .sum_up = on_sum_up,
                                     .measured = on_measured,
                                     .start_undone = on_start_undone,
                                     .job_gone = on_job_gone,
                                     .not_saved = on_not_saved,
                                     .saved = on_saved,
                                     .answer = on_answer,
                                     .publish = on_publish,
                                     .tell_waiting = on_tell_waiting,
                                     .launch = on_launch,
                                     .act = on_act,
                                     .finish = on_finish};
