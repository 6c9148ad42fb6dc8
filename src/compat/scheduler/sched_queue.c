/* Syncs lines of the jobs file with the daemon: pending lines are sent as a whole whenever
 * they change, by ascending priority number, then in file order. Completed jobs are known to
 * the daemon and never run again, nor do jobs that a person cancelled; jobs that ended
 * otherwise run again after the scheduler's next start. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "compat/scheduler/scheduler.h"
#include "spec/attr.h"

#define ROOM_PART 4     /* send more once 1/4 of the queue is free */
#define MANY      10000 /* after sending so many jobs, return memory to the system */

json_t *
sched_details(const struct sched_job *job)
{
    json_t *d =
        json_pack("{s:o,s:[]}", "job_id", json_sprintf("%lld", (long long)job->id), "gpu_ids");

    for (int i = 0; i < job->n_gpus; i++)
        json_array_append_new(json_object_get(d, "gpu_ids"), json_integer(job->gpus[i]));
    json_object_set_new(d, "required_gpus", json_real(job->spec.need));
    json_object_set_new(d, "script", json_string(job->spec.script));
    return d;
}

/* --- sending --- */

static int
by_turn(const void *a, const void *b)
{
    const struct sched_job *x = *(struct sched_job *const *)a;
    const struct sched_job *y = *(struct sched_job *const *)b;

    if (x->spec.priority != y->spec.priority)
        return x->spec.priority < y->spec.priority ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void
refuse(struct sched *s, struct sched_job *job, const char *why)
{
    job->never = true;
    sched_log(&s->log, SCHED_ERROR, sched_details(job), "%s cannot run: %s", job->spec.text,
              why);
}

/* True if the job is to be sent now. */
static bool
is_to_be_sent(struct sched *s, struct sched_job *job, int64_t room)
{
    int needed = sched_cards_needed(s, job->spec.need);
    uint64_t devices = sched_devices(s, job);

    if (job->added || job->never || job->status > SCHED_RUNNING)
        return false;
    if (__builtin_popcountll(devices) < needed) {
        auto_free char *why = xasprintf("it needs %d GPUs, and may use %d", needed,
                                        __builtin_popcountll(devices));

        refuse(s, job, why);
        return false;
    }
    job->held_back = __builtin_popcountll(devices & ~s->paused_alone) < needed;
    if (!job->held_back && job->status == SCHED_NEW && room <= 0) {
        job->held_back = true;
        s->no_room++;
    }
    return !job->held_back || job->status == SCHED_RUNNING;
}

/* Our own daemon enforces running_max itself. Another daemon gets no more than running_max
 * jobs, so that its limits need not change. */
static int64_t
most_told(const struct sched *s)
{
    return s->session.link.own ? 0 : s->config.running_max;
}

/* How many more lines may be sent. */
static int64_t
room_of(const struct sched *s)
{
    int64_t waiting = 0, running = 0, room = INT64_MAX;

    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        waiting += job->status == SCHED_WAITING;
        running += job->status == SCHED_RUNNING;
    }
    if (s->config.queue_max)
        room = s->config.queue_max - waiting;
    if (most_told(s) && room > most_told(s) - waiting - running)
        room = most_told(s) - waiting - running;
    return room;
}

/* Room needed before everything is sent again, since each sync costs time proportional to the
 * queue. */
static int64_t
room_wanted(const struct sched *s)
{
    return most_told(s) ? 0 : s->config.queue_max / ROOM_PART;
}

static size_t
choose(struct sched *s, struct sched_job **chosen)
{
    int64_t room = room_of(s);
    size_t n = 0, kept = 0;

    s->no_room = s->made_room = 0;
    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (s->all_due || job->status == SCHED_NEW)
            chosen[n++] = job;
    }
    qsort(chosen, n, sizeof *chosen, by_turn);
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = chosen[i];

        if (!is_to_be_sent(s, job, room))
            continue;
        room -= job->status == SCHED_NEW;
        chosen[kept++] = job;
    }
    return kept;
}

void
sched_tell_all(struct sched *s)
{
    s->sync_due = s->all_due = true;
}

/* Where the priority is clamped, or the queue limited, only the place in the whole file gives
 * the job's turn. */
bool
sched_comes_last(const struct sched *s, const struct sched_job *job)
{
    int64_t p = job->spec.priority;

    return job->line > s->last_line && p < -PRIORITY_MIN && p > -PRIORITY_MAX &&
           !s->no_priority && s->config.queue_max == 0;
}

void
sched_make_room(struct sched *s, const struct sched_job *job, bool ended)
{
    if (s->no_room == 0 || (most_told(s) ? !ended : job->status != SCHED_WAITING))
        return;
    s->made_room++;
    if (s->made_room > room_wanted(s))
        sched_tell_all(s);
}

bool
sched_fill_request(void *sched, void *sched_job, struct request *r)
{
    struct sched *s = sched;
    struct sched_job *job = sched_job;
    struct err e = {0};

    if (!job->stamp_us)
        job->stamp_us = clock_wall_us();
    sched_request_fill(s, job, r);
    if (request_validate(r, &e) == 0)
        return true;
    refuse(s, job, e.text);
    return false;
}

void
sched_refused(void *sched, void *sched_job, const char *why)
{
    struct sched_job *job = sched_job;

    if (!job->never)
        refuse(sched, job, why);
}

void
sched_entered(void *sched, void *sched_job, const char *state)
{
    struct sched *s = sched;
    struct sched_job *job = sched_job;
    bool is_new = job->status == SCHED_NEW;

    job->again = false;
    if (strcmp(state, "COMPLETED") == 0) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, sched_details(job),
                      "Job %lld has completed before and is not run again: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_COMPLETED;
    } else if (strcmp(state, "INFEASIBLE") == 0) {
        job->status = SCHED_FAILED;
    } else if (!render_state_is_final(state) && !render_state_is_active(state)) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, sched_details(job), "Job %lld queued: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_WAITING;
    }
}

enum compat_found
sched_found(void *sched, void *sched_job, const char *state)
{
    const struct sched_job *job = sched_job;

    (void)sched;
    if (render_state_is_active(state) && job->status <= SCHED_WAITING)
        return COMPAT_LOOK;
    if (strcmp(state, "CANCELLED") == 0 && job->status == SCHED_NEW)
        return COMPAT_LOOK; /* its event or object says who cancelled it */
    return render_state_is_final(state) && job->status == SCHED_NEW ? COMPAT_AGAIN
                                                                    : COMPAT_WELL;
}

void
sched_set_running(struct sched_job *job, const json_t *gpus)
{
    size_t i;
    json_t *gpu;

    job->status = SCHED_RUNNING;
    job->n_gpus = 0;
    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = json_is_object(gpu) ? answer_int(gpu, "index", -1)
                                            : (int64_t)json_integer_value(gpu);

        if (index >= 0 && index < GPU_MAX && job->n_gpus < GPU_MAX)
            job->gpus[job->n_gpus++] = (uint8_t)index;
    }
}

/* Cancelled before our start, perhaps by an earlier scheduler that stopped. */
static void
adopt_cancelled(struct sched *s, struct sched_job *job, const char *by)
{
    if (job->status != SCHED_NEW)
        return;
    if (!sched_called_off("CANCELLED", by)) {
        job->again = true;
        sched_tell_all(s);
        return;
    }
    job->status = SCHED_FAILED;
    sched_log(&s->log, SCHED_INFO, sched_details(job),
              "Job %lld was cancelled by %s and is not run again: %s", (long long)job->id, by,
              job->spec.text);
}

/* A job that is running already or was cancelled earlier, without an event. */
void
sched_adopt(void *sched, void *sched_job, const json_t *object)
{
    struct sched *s = sched;
    struct sched_job *job = sched_job;
    const char *state = answer_str(object, "state");
    bool is_new;

    if (strcmp(state, "CANCELLED") == 0)
        adopt_cancelled(s, job, answer_str(object, "cancelled_by"));
    if (!render_state_is_active(state))
        return;
    is_new = job->status == SCHED_NEW;
    sched_set_running(job, json_object_get(object, "gpus"));
    if (is_new)
        sched_log(&s->log, SCHED_INFO, sched_details(job), "Job %lld runs already: %s",
                  (long long)job->id, job->spec.script);
    s->look_due_us = clock_boot_us();
}

static struct compat_line
line_of(struct sched_job *job)
{
    return (struct compat_line){.key = job->spec.key,
                                .number = job->line,
                                .job = job,
                                .id = &job->id,
                                .again = job->again};
}

int
sched_sync(struct sched *s, struct err *e)
{
    auto_free struct sched_job **chosen =
        xcalloc(HASH_COUNT(s->jobs) + 1, sizeof(struct sched_job *));
    auto_free struct compat_line *lines = xcalloc(HASH_COUNT(s->jobs) + 1, sizeof *lines);
    size_t n = choose(s, chosen);
    const char *full;
    int rc;

    s->session.is_part = !s->all_due;
    s->sync_due = s->all_due = false;
    for (size_t i = 0; i < n; i++) {
        lines[i] = line_of(chosen[i]);
        if (s->last_line < chosen[i]->line)
            s->last_line = chosen[i]->line;
    }
    rc = compat_sync(&s->session, lines, n, e);
    if (rc < 0 && e->code == ERR_PERMISSION && !s->no_priority) {
        /* On the machine's daemon not every user may raise priorities. */
        s->no_priority = true;
        sched_tell_all(s);
        return sched_sync(s, e);
    }
    if (rc < 0)
        sched_tell_all(s);
    full = rc == 0 ? compat_full(&s->session) : NULL;
    if (full)
        sched_log(&s->log, SCHED_WARNING, NULL,
                  "Jobs wait until there is room in the queue: %s", full);
    /* Many of the lines sent had ended or cannot run, so there is room for more. If the daemon
     * left lines out, wait instead. */
    if (rc == 0 && !s->session.full && s->no_room > 0 && room_of(s) > room_wanted(s))
        sched_tell_all(s);
    if (rc == 0)
        sched_log(&s->log, SCHED_DEBUG, NULL, "The daemon knows of %zu jobs that wait or run",
                  n);
    if (n >= MANY)
        malloc_trim(0);
    return rc;
}

int
sched_put_aside(struct sched *s, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(HASH_COUNT(s->jobs) + 1, sizeof *lines);
    size_t n = 0;

    s->leaving = s->all_due = true;
    s->session.is_part = false;
    for (struct sched_job *job = s->jobs; job && s->session.link.own; job = job->hh.next) {
        if (job->status == SCHED_WAITING && !job->added)
            lines[n++] = line_of(job);
    }
    return compat_send(&s->session, lines, n, e);
}
