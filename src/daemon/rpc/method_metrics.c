/* `metrics`: everything that is counted or measured, as numbers and as Prometheus text. Names
 * and units: docs/protocol.md, "Metrics". Values that have not been reported are omitted, so
 * that an alert sees an absent series and not a zero. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/counters.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/view/exposition.h"
#include "store/store.h"
#include "sys/self.h"

#define MIB 1048576.0

/* --- jobs --- */

static const char *
lower(const char *name, char out[32])
{
    size_t n = 0;
    for (; name[n] && n < 31; n++)
        out[n] = (char)tolower((unsigned char)name[n]);
    out[n] = '\0';
    return out;
}

static void
put_jobs(struct rpc *rpc, struct exposition *x)
{
    const struct tally_jobs *j = tally_jobs(rpc->tally);
    char name[32];
    exposition_family(x, "berth_jobs", "gauge",
                      "Jobs that have not ended, by state; tasks of arrays count one by one.");
    for (int s = 0; s < JOB_COMPLETED; s++)
        exposition_value(x, (double)queue_n_in(rpc->inst->queue, (enum job_state)s), "state",
                         lower(job_state_name((enum job_state)s), name), NULL);
    exposition_one(x, "berth_jobs_submitted_total", "counter",
                   "Jobs accepted; tasks of arrays count one by one.", (double)j->submitted);
    exposition_family(x, "berth_jobs_completed_total", "counter",
                      "Jobs that have ended, by their final state.");
    for (int s = JOB_COMPLETED; s < JOB_STATES; s++)
        exposition_value(x, (double)j->ended[s], "result",
                         lower(job_state_name((enum job_state)s), name), NULL);
    exposition_one(x, "berth_job_starts_total", "counter", "Attempts that were started.",
                   (double)j->started);
    exposition_family(x, "berth_job_attempts_ended_total", "counter",
                      "Attempts that have ended, by outcome.");
    for (int o = OUTCOME_NONE + 1; o < OUTCOMES; o++)
        exposition_value(x, (double)j->outcomes[o], "outcome", outcome_name((enum outcome)o),
                         NULL);
    exposition_family(x, "berth_job_retries_total", "counter",
                      "Attempts that were followed by another one, by reason.");
    for (int a = 0; a < AGAINS; a++)
        exposition_value(x, (double)j->again[a], "reason", again_name((enum again)a), NULL);
    exposition_histogram(x, "berth_job_wait_seconds",
                         "From submission, or the begin time, to the first start.", &j->waits);
    exposition_histogram(x, "berth_job_run_seconds", "Run time of attempts.", &j->runs);
}

/* --- users --- */

struct user {
    uint32_t uid;
    int64_t waiting, running;
};

struct users {
    struct user *list;
    size_t n;
};

static struct user *
user_of(struct users *u, uint32_t uid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->list[i].uid == uid)
            return &u->list[i];
    u->list = xrealloc(u->list, (u->n + 1) * sizeof *u->list);
    u->list[u->n] = (struct user){.uid = uid};
    return &u->list[u->n++];
}

static void
put_user_jobs(const struct instance *inst, struct exposition *x)
{
    struct users users = {0};
    uint32_t uid;
    int64_t waiting;
    for (size_t i = 0; queue_user_waiting(inst->queue, i, &uid, &waiting); i++)
        user_of(&users, uid)->waiting = waiting;
    for (struct job *job = queue_active(inst->queue); job; job = queue_active_next(job))
        user_of(&users, job->uid)->running++;
    exposition_family(x, "berth_user_jobs", "gauge",
                      "Jobs of each user with current or recent jobs.");
    for (size_t i = 0; i < users.n; i++) {
        const char *user = daemon_user_name(users.list[i].uid);
        exposition_value(x, (double)users.list[i].waiting, "user", user, "state", "waiting",
                         NULL);
        exposition_value(x, (double)users.list[i].running, "user", user, "state", "running",
                         NULL);
    }
    free(users.list);
}

static void
put_users(const struct rpc *rpc, struct exposition *x)
{
    size_t n;
    put_user_jobs(rpc->inst, x);
    exposition_family(x, "berth_user_gpu_seconds_total", "counter",
                      "Run time of ended attempts, multiplied by their GPUs.");
    const struct tally_user *users = tally_users(rpc->tally, &n);
    for (size_t i = 0; i < n; i++)
        exposition_value(x, (double)users[i].gpu_ms / 1e3, "user",
                         daemon_user_name(users[i].uid), NULL);
}

/* --- GPUs --- */

typedef double (*card_fn)(const struct card *c); /* below 0: not reported */

static double
card_total(const struct card *c)
{
    return c->info.total_mib > 0 ? (double)c->info.total_mib * MIB : -1;
}

static double
card_used(const struct card *c)
{
    return c->sampled_us ? (double)c->used_mib * MIB : -1;
}

static double
card_declared(const struct card *c)
{
    return (double)c->held_mib * MIB;
}

static double
card_foreign(const struct card *c)
{
    return c->sampled_us ? (double)c->external_mib * MIB : -1;
}

static double
card_free(const struct card *c)
{
    if (!c->sampled_us || c->info.total_mib == 0)
        return -1;
    return c->headroom_mib > 0 ? (double)c->headroom_mib * MIB : 0;
}

static double
card_share(const struct card *c)
{
    return (double)c->share_held / 1000;
}

static double
card_load(const struct card *c)
{
    return c->sampled_us ? (double)c->util / 100 : -1;
}

static double
card_temperature(const struct card *c)
{
    return c->sampled_us ? (double)c->temperature_c : -1;
}

static double
card_jobs(const struct card *c)
{
    return c->n_holds;
}

static double
card_strangers(const struct card *c)
{
    return c->n_strangers;
}

static double
card_age(const struct card *c)
{
    return c->sampled_us ? (double)(clock_boot_us() - c->sampled_us) / 1e6 : -1;
}

static const struct {
    const char *name, *help;
    card_fn value;
} card_families[] = {
    {"berth_gpu_memory_total_bytes", "Memory of the card.", card_total},
    {"berth_gpu_memory_used_bytes", "Memory in use by all processes.", card_used},
    {"berth_gpu_memory_declared_bytes", "Memory held for jobs.", card_declared},
    {"berth_gpu_memory_foreign_bytes", "Memory in use by other processes.", card_foreign},
    {"berth_gpu_memory_free_bytes", "Memory that new jobs can get.", card_free},
    {"berth_gpu_share_held_ratio", "Compute share held for jobs.", card_share},
    {"berth_gpu_utilization_ratio", "Load, as the driver reports it.", card_load},
    {"berth_gpu_temperature_celsius", "Temperature of the card.", card_temperature},
    {"berth_gpu_jobs", "Jobs on the card.", card_jobs},
    {"berth_gpu_foreign_processes", "Other processes on the card.", card_strangers},
    {"berth_probe_age_seconds", "Time since the card was last sampled.", card_age},
};

static const char *
number_text(int i, char out[12])
{
    snprintf(out, 12, "%d", i);
    return out;
}

static void
put_card_states(const struct instance *inst, struct exposition *x)
{
    static const enum gpu_state states[] = {GPU_UP,   GPU_PAUSED,  GPU_DRAINING,
                                            GPU_LOST, GPU_UNKNOWN, GPU_SICK};
    char number[12];
    exposition_family(x, "berth_gpu_state", "gauge",
                      "1 for the state that the card is in, 0 for all others.");
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        const struct card *c = ledger_card(inst->ledger, i);
        if (c->gone)
            continue;
        for (size_t s = 0; s < sizeof states / sizeof states[0]; s++)
            exposition_value(x, card_state(c) == states[s], "gpu", number_text(i, number),
                             "uuid", c->info.uuid, "state", gpu_state_name(states[s]), NULL);
    }
}

static void
put_cards(const struct instance *inst, struct exposition *x)
{
    char number[12];
    int n = ledger_n_cards(inst->ledger);
    exposition_family(x, "berth_gpu_info", "gauge", "The card's name; always 1.");
    for (int i = 0; i < n; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, i)->info;
        if (ledger_card(inst->ledger, i)->gone)
            continue;
        exposition_value(x, 1, "gpu", number_text(i, number), "uuid", info->uuid, "name",
                         info->name, NULL);
    }
    put_card_states(inst, x);
    for (size_t f = 0; f < sizeof card_families / sizeof card_families[0]; f++) {
        exposition_family(x, card_families[f].name, "gauge", card_families[f].help);
        for (int i = 0; i < n; i++) {
            const struct card *c = ledger_card(inst->ledger, i);
            double v = card_families[f].value(c);
            if (v >= 0 && !c->gone)
                exposition_value(x, v, "gpu", number_text(i, number), "uuid", c->info.uuid,
                                 NULL);
        }
    }
}

/* --- the daemon --- */

static void
put_build(const struct rpc *rpc, struct exposition *x)
{
    const char *backend = prober_backend(rpc->cards->prober),
               *driver = prober_driver(rpc->cards->prober);
    exposition_family(x, "berth_build_info", "gauge",
                      "Version and mode of the daemon; always 1.");
    exposition_value(x, 1, "version", BERTH_VERSION, "mode",
                     rpc->inst->places.system ? "system" : "user", "backend",
                     backend ? backend : "", "driver", driver ? driver : "", NULL);
    exposition_one(x, "berth_start_time_seconds", "gauge",
                   "Start of the daemon, in seconds since 1970.",
                   (double)rpc->inst->started_us / 1e6);
}

static void
put_work(const struct rpc *rpc, struct exposition *x)
{
    const struct tally_times *t = tally_times(rpc->tally);
    exposition_histogram(x, "berth_scheduler_cycle_seconds",
                         "Duration of one pass over the queue.", &t->plans);
    exposition_histogram(x, "berth_commit_seconds", "Duration of one commit.", &t->commits);
    exposition_histogram(x, "berth_round_seconds",
                         "Duration of one round of the daemon's loop.", &t->rounds);
    exposition_one(x, "berth_commit_failures_total", "counter",
                   "Commits that failed and were tried again.", (double)t->commits_failed);
    exposition_one(x, "berth_events_total", "counter", "Events since the database was created.",
                   (double)store_event_last(rpc->inst->store));
    exposition_one(x, "berth_journal_bytes", "gauge", "Size of the database and its log.",
                   (double)store_bytes(rpc->inst->store));
    exposition_one(x, "berth_probe_up", "gauge", "1 while the GPUs answer.",
                   prober_unknown_since_us(rpc->cards->prober) == 0);
    exposition_one(x, "berth_probe_restarts_total", "counter",
                   "Probes that hung or died and were replaced.",
                   (double)prober_restarts(rpc->cards->prober));
    exposition_one(x, "berth_clients", "gauge", "Open connections.",
                   server_client_count(rpc->server));
    exposition_one(x, "berth_clients_rejected_total", "counter",
                   "Connections refused or dropped because of too many connections or too much "
                   "unread data.",
                   (double)server_turned_away(rpc->server, NULL));
}

/* Not named process_*, because a textfile of node_exporter would collide with its own. */
static void
put_self(struct exposition *x)
{
    struct self self;
    self_read(&self);
    if (self.resident_bytes >= 0)
        exposition_one(x, "berth_daemon_resident_memory_bytes", "gauge",
                       "Memory of the daemon.", (double)self.resident_bytes);
    if (self.open_fds >= 0)
        exposition_one(x, "berth_daemon_open_fds", "gauge", "Open descriptors of the daemon.",
                       self.open_fds);
    if (self.max_fds >= 0)
        exposition_one(x, "berth_daemon_max_fds", "gauge", "Maximum of open descriptors.",
                       (double)self.max_fds);
    if (self.cpu_us >= 0)
        exposition_one(x, "berth_daemon_cpu_seconds_total", "counter",
                       "CPU time of the daemon.", (double)self.cpu_us / 1e6);
}

int
method_metrics(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    struct exposition x = {.text = &text, .numbers = out};
    (void)c;
    (void)params;
    (void)e;
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    jsonw_kobject(out, "metrics");
    put_build(rpc, &x);
    put_jobs(rpc, &x);
    put_users(rpc, &x);
    put_cards(rpc->inst, &x);
    put_work(rpc, &x);
    put_self(&x);
    jsonw_end_object(out);
    jsonw_kstr(out, "text", buf_str(&text));
    jsonw_end_object(out);
    return 0;
}
