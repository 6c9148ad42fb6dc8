/* The only place where the turn (turn/turn.h) meets the parts of the daemon. In every step of
 * a turn the parts run in the order of the table; turn.h describes the steps. No part calls
 * another here. */
#include "daemon/turn_wiring.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/launch.h"
#include "daemon/attempt/launch_spec.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/counters.h"
#include "daemon/common/pace.h"
#include "daemon/daemon.h"
#include "daemon/events/event_text.h"
#include "daemon/events/event_unstored.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/card_numbers.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/gpu/telemetry.h"
#include "daemon/gpu/vram_wait.h"
#include "daemon/idle_work.h"
#include "daemon/outbox/outbox.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/waiters.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/changes.h"
#include "daemon/turn/turn.h"
#include "daemon/turn/turn_loop.h"
#include "daemon/view/views.h"
#include "store/store.h"

/* --- the daemon as a whole --- */

static bool
daemon_before_plan(void *arg)
{
    const struct daemon *d = arg;
    return d->inst.ready && !d->inst.stopping;
}

static void
daemon_planned(void *arg, const struct plan *p, int64_t took_us)
{
    struct daemon *d = arg;
    (void)p;
    (void)took_us;
    d->views->needs_told = 0;
}

/* Stores the boot's id once recovery's outcomes are all stored, in the turn that commits the
 * last of them. A daemon started before that must still see that there was a reboot. */
static void
daemon_write(void *arg)
{
    const struct daemon *d = arg;
    if (d->inst.ready && strcmp(store_boot_id(d->inst.store), clock_boot_id()) != 0 &&
        !watch_has_of_before(d->attempts))
        store_boot_id_set(d->inst.store, clock_boot_id(), NULL);
}

/* --- the GPUs --- */

static void
health_part_settle(void *arg)
{
    const struct daemon *d = arg;
    health_settle(d->cards);
}

static void
health_part_write(void *arg)
{
    const struct daemon *d = arg;
    health_save(d->cards);
}

static void
health_part_saved(void *arg)
{
    const struct daemon *d = arg;
    health_saved(d->cards);
}

static void
cards_part_write(void *arg)
{
    const struct daemon *d = arg;
    cards_save(d->cards);
}

static void
cards_part_saved(void *arg)
{
    const struct daemon *d = arg;
    cards_saved(d->cards);
}

static void
telemetry_part_write_job(void *arg, const struct job *job)
{
    const struct daemon *d = arg;
    if (job->unsaved & SAVE_ATTEMPT && !(job->unsaved & SAVE_ATTEMPT_NEW))
        telemetry_write(d->cards, job, job->unsaved & SAVE_SETTLED);
}

static void
telemetry_part_act(void *arg, const struct job *job, unsigned what)
{
    const struct daemon *d = arg;
    if (what & SAVE_ATTEMPT)
        telemetry_written(d->cards, job->id, what & SAVE_SETTLED);
}

/* False: a sample is on its way and will request a turn. */
static bool
probe_before_plan(void *arg)
{
    const struct daemon *d = arg;
    return prober_is_fresh(d->cards->prober);
}

static void
probe_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    vram_wait_read(d->cards, x);
}

/* --- attempts on this machine --- */

/* No starts until all attempts from before a reboot are settled: a daemon started before that
 * would take new attempts for old ones too. */
static bool
attempts_before_plan(void *arg)
{
    const struct daemon *d = arg;
    return !machine_says(d->attempts) && !watch_has_of_before(d->attempts);
}

static void
attempts_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    watch_read_change(d->attempts, x); /* to stop jobs */
}

/* Trouble with the folder shared with nodes must not block starts on this machine. */
static void
start_failed(const struct daemon *d, const struct job *job, const struct err *e)
{
    if (shared_folder_has(&d->inst, job))
        slurm_folder_failed(d->slurm, e);
    else
        machine_trouble(d->attempts, e->text);
}

static bool
attempts_prepare_start(void *arg, struct job *job)
{
    const struct daemon *d = arg;
    struct err e = {0};
    bool on_slurm = job->req.demand.engine == ENGINE_SLURM;
    if (machine_says(d->attempts) || (on_slurm && slurm_folder_ready(d->slurm) < 0))
        return false;
    if (on_slurm)
        job->run->sent.folder = d->inst.shared.number;
    if (folder_make(d->attempts, job, &e) < 0) {
        start_failed(d, job, &e);
        return false;
    }
    if (!on_slurm)
        launch_ahead(d->attempts, job);
    return true;
}

static void
attempts_start_undone(void *arg, const struct job *job)
{
    const struct daemon *d = arg;
    launch_undo(d->attempts, job);
    folder_remove(d->attempts, job);
}

static void
attempts_launch(void *arg, struct job *job)
{
    const struct daemon *d = arg;
    if (job->req.demand.engine != ENGINE_SLURM)
        launch_attempt(d->attempts, job);
}

static void
attempts_act(void *arg, const struct job *job, unsigned what)
{
    const struct daemon *d = arg;
    if (what & SAVE_SETTLED)
        watch_settled(d->attempts, job);
}

/* --- attempts on Slurm --- */

static bool
slurm_before_plan(void *arg)
{
    const struct daemon *d = arg;
    ledger_set_slurm_room(d->inst.ledger, slurm_room(d->slurm));
    return true;
}

static void
slurm_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    slurm_read_change(d->slurm, x); /* to stop jobs there */
}

/* Writes the spec before the commit, because a node may open the folder of any
 * committed attempt. */
static bool
slurm_prepare_start(void *arg, struct job *job)
{
    const struct daemon *d = arg;
    auto_close int dir = -1;
    auto_close int lock = -1;
    struct err e = {0};
    if (job->req.demand.engine != ENGINE_SLURM ||
        spec_fill_folder(d->attempts, job, &dir, &lock, &e) == 0)
        return true;
    folder_remove(d->attempts, job);
    start_failed(d, job, &e);
    return false;
}

static void
slurm_part_write(void *arg)
{
    struct daemon *d = arg;
    shared_folder_write(&d->inst);
}

static void
slurm_part_saved(void *arg)
{
    struct daemon *d = arg;
    shared_folder_written(&d->inst);
}

static void
slurm_part_prepare(void *arg)
{
    const struct daemon *d = arg;
    slurm_prepare(&d->inst);
}

static void
slurm_part_launch(void *arg, struct job *job)
{
    const struct daemon *d = arg;
    if (job->req.demand.engine == ENGINE_SLURM)
        slurm_launch(d->slurm, job);
}

static void
slurm_act(void *arg, const struct job *job, unsigned what)
{
    const struct daemon *d = arg;
    if (what & SAVE_SETTLED)
        slurm_settled(d->slurm, job->id, job->run->number);
}

/* --- counters --- */

static void
counters_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    tally_read(d->tally, x);
}

static void
counters_planned(void *arg, const struct plan *p, int64_t took_us)
{
    const struct daemon *d = arg;
    (void)p;
    tally_plan(d->tally, took_us);
}

static void
counters_sum_up(void *arg, struct job *const *jobs, size_t n)
{
    const struct daemon *d = arg;
    tally_write(d->tally, d->inst.store, jobs, n);
}

static void
counters_measured(void *arg, int64_t took_us, const struct err *failed)
{
    const struct daemon *d = arg;
    tally_commit(d->tally, took_us, failed);
}

static void
counters_saved(void *arg)
{
    const struct daemon *d = arg;
    tally_written(d->tally);
}

/* --- clients --- */

static void
waiters_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    waits_read(d->rpc->waits, x);
}

/* A client that already waits for the job is answered. */
static void
waiters_job_gone(void *arg, const struct job *job)
{
    const struct daemon *d = arg;
    waits_job_ended(d->rpc->waits, job);
}

static void
waiters_act(void *arg, const struct job *job, unsigned what)
{
    const struct daemon *d = arg;
    if (what & SAVE_ENDED)
        waits_job_ended(d->rpc->waits, job);
}

static void
works_part_saved(void *arg)
{
    const struct daemon *d = arg;
    works_saved(d->rpc);
}

static void
works_part_not_saved(void *arg, const struct err *why)
{
    const struct daemon *d = arg;
    works_not_saved(d->rpc, why);
}

static void
clients_answer(void *arg, const struct err *failed)
{
    const struct daemon *d = arg;
    if (d->rpc->server)
        server_release(d->rpc->server, failed);
}

static void
followers_read(void *arg, struct change *x)
{
    const struct daemon *d = arg;
    if (d->rpc->server)
        event_launched_read(d->rpc->server, d->inst.queue, x);
}

static void
followers_publish(void *arg, const struct change *list, size_t n)
{
    const struct daemon *d = arg;
    bool any = false;
    for (size_t i = 0; d->rpc->server && i < n; i++) {
        const struct change *ev = &list[i];
        if (!ev->kind[0])
            continue;
        any = true;
        server_publish(d->rpc->server, &(struct event_view){.kind = ev->kind,
                                                            .job = ev->job,
                                                            .file = ev->file,
                                                            .line = ev->line.data,
                                                            .n = ev->line.len});
    }
    if (any)
        server_publish_end(d->rpc->server);
}

static void
followers_tell_waiting(void *arg, const struct job *job)
{
    const struct daemon *d = arg;
    if (d->rpc->server)
        event_waiting(d->rpc->server, d->views, job);
}

/* --- events, hooks and mails --- */

static void
events_part_read(void *arg, struct change *x)
{
    struct daemon *d = arg;
    event_read(&d->inst, x);
}

static void
outbox_write(void *arg)
{
    const struct daemon *d = arg;
    courier_save(d->courier);
}

static void
outbox_write_event(void *arg, const struct change *x)
{
    const struct daemon *d = arg;
    const struct job *job = x->hooks ? queue_get(d->inst.queue, x->job) : NULL;
    if (job)
        hooks_post(d->courier, job, x->kind, buf_str(&x->line));
}

static void
outbox_not_saved(void *arg, const struct err *why)
{
    const struct daemon *d = arg;
    (void)why;
    courier_not_saved(d->courier);
}

static void
outbox_finish(void *arg)
{
    const struct daemon *d = arg;
    courier_saved(d->courier);
}

/* --- the process --- */

static void
set_timer(void *arg, enum turn_timer which, int64_t ms)
{
    const struct daemon *d = arg;
    turn_loop_set_timer(d->turn_loop, which, ms);
}

static void
stop_timer(void *arg, enum turn_timer which)
{
    const struct daemon *d = arg;
    turn_loop_stop_timer(d->turn_loop, which);
}

static void
spent(void *arg, const char *what)
{
    const struct daemon *d = arg;
    pace_spent(d->pace, what ? what : PACE_REST, UINT32_MAX);
}

static bool
upkeep(void *arg)
{
    const struct daemon *d = arg;
    return idle_work_do(d->idle_work);
}

/* Charges the turn's time to the users who changed something: their next requests are delayed
 * by it. */
static void
after(void *arg, bool saved, int64_t took_us)
{
    struct daemon *d = arg;
    if (saved && d->rpc->server)
        server_charge_turn(d->rpc->server, took_us);
    if (saved || (d->inst.stopping && !d->inst.stop_when_empty))
        d->after_turn(d);
}

void
turn_wire(struct daemon *d, void (*after_turn)(struct daemon *))
{
    const struct turn_part parts[] = {
        {.name = "daemon",
         .arg = d,
         .before_plan = daemon_before_plan,
         .planned = daemon_planned,
         .write = daemon_write},
        {.name = "telemetry",
         .arg = d,
         .write_job = telemetry_part_write_job,
         .act = telemetry_part_act},
        {.name = "attempts",
         .arg = d,
         .before_plan = attempts_before_plan,
         .read = attempts_read,
         .prepare_start = attempts_prepare_start,
         .start_undone = attempts_start_undone,
         .launch = attempts_launch,
         .act = attempts_act},
        {.name = "slurm",
         .arg = d,
         .before_plan = slurm_before_plan,
         .read = slurm_read,
         .prepare_start = slurm_prepare_start,
         .prepare = slurm_part_prepare,
         .write = slurm_part_write,
         .saved = slurm_part_saved,
         .launch = slurm_part_launch,
         .act = slurm_act},
        {.name = "probe", .arg = d, .before_plan = probe_before_plan, .read = probe_read},
        {.name = "counters",
         .arg = d,
         .read = counters_read,
         .planned = counters_planned,
         .sum_up = counters_sum_up,
         .measured = counters_measured,
         .saved = counters_saved},
        {.name = "waiters",
         .arg = d,
         .read = waiters_read,
         .job_gone = waiters_job_gone,
         .act = waiters_act},
        {.name = "followers",
         .arg = d,
         .read = followers_read,
         .publish = followers_publish,
         .tell_waiting = followers_tell_waiting},
        {.name = "events", .arg = d, .read = events_part_read},
        {.name = "health",
         .arg = d,
         .settle = health_part_settle,
         .write = health_part_write,
         .saved = health_part_saved},
        {.name = "cards", .arg = d, .write = cards_part_write, .saved = cards_part_saved},
        {.name = "outbox",
         .arg = d,
         .write = outbox_write,
         .write_event = outbox_write_event,
         .not_saved = outbox_not_saved,
         .finish = outbox_finish},
        {.name = "long work",
         .arg = d,
         .not_saved = works_part_not_saved,
         .saved = works_part_saved},
        {.name = "clients", .arg = d, .answer = clients_answer},
    };
    const struct turn_host host = {.arg = d,
                                   .set_timer = set_timer,
                                   .stop_timer = stop_timer,
                                   .spent = spent,
                                   .upkeep = upkeep,
                                   .after = after};
    d->after_turn = after_turn;
    d->turn_loop = turn_loop_new(d->inst.loop);
    d->inst.turn =
        turn_new(d->inst.state, d->inst.store, &host, parts, sizeof parts / sizeof *parts);
    turn_loop_run(d->turn_loop, d->inst.turn);
}
