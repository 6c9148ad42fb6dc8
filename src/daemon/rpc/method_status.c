/* `gpus`, `status` and `stop`: the machine and the daemon itself. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/cpu_nodes.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/nursery/nursery_link.h"
#include "daemon/outbox/outbox.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/daemon_log.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/job_facts.h"
#include "sys/confine.h"

static void
put_known(struct jsonw *w, const char *key, int64_t v)
{
    if (v >= 0)
        jsonw_kint(w, key, v);
    else
        jsonw_knull(w, key);
}

static void
put_strangers(struct jsonw *w, const struct card *c)
{
    jsonw_karray(w, "strangers");
    for (int i = 0; i < c->n_strangers; i++) {
        const struct stranger *s = &c->strangers[i];
        jsonw_object(w);
        jsonw_kint(w, "pid", s->pid);
        jsonw_kstr(w, "user", s->uid < 0 ? NULL : daemon_user_name((uid_t)s->uid));
        put_known(w, "mib", s->mib);
        put_known(w, "peak_mib", s->peak_mib);
        /* The ledger's clock counts from boot; clients want wall time. */
        jsonw_ktime(w, "since", clock_wall_us() - (clock_boot_us() - s->since_us));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

/* Lists the jobs on the GPU and their memory, so that a display of it needs no second
 * request. */
static void
put_holds(const struct instance *inst, struct jsonw *w, const struct card *c)
{
    jsonw_karray(w, "holds");
    for (int i = 0; i < c->n_holds; i++) {
        const struct hold *h = &c->holds[i];
        const struct job *job = queue_get(inst->queue, h->job);
        jsonw_object(w);
        jsonw_kint(w, "job", h->job);
        put_known(w, "array_job", job && job->array ? (int64_t)job->array : -1);
        put_known(w, "array_task", job && job->array ? job->task : -1);
        jsonw_kstr(w, "user", job ? daemon_owner_name(job) : NULL);
        put_known(w, "vram_mib", h->demand_mib > 0 ? h->demand_mib : -1);
        put_known(w, "now_mib", h->now_mib);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
put_instance(struct jsonw *w, const struct gpu_info *info)
{
    if (!info->mig_gpu[0]) {
        jsonw_knull(w, "mig");
        return;
    }
    jsonw_kobject(w, "mig");
    jsonw_kstr(w, "gpu", info->mig_gpu);
    put_known(w, "gi", info->mig_gi);
    put_known(w, "ci", info->mig_ci);
    jsonw_end_object(w);
}

static void
put_node(const struct rpc *rpc, struct jsonw *w, const struct card *c)
{
    auto_buf struct buf cpus = BUF_INIT;
    auto_buf struct buf why = BUF_INIT;
    cpu_nodes_of_card(rpc->attempts, c, &cpus, &why);
    put_known(w, "numa_node", c->info.numa);
    jsonw_kstr(w, "cpu_list", cpus.len ? buf_str(&cpus) : NULL);
    jsonw_kstr(w, "bind_why", why.len ? buf_str(&why) : NULL);
    jsonw_karray(w, "nvlink");
    for (uint64_t rest = c->links; rest; rest &= rest - 1)
        jsonw_int(w, __builtin_ctzll(rest));
    jsonw_end_array(w);
}

/* Writes "on", or null and, where MPS is wanted, the reason: the caller's own MPS, or for an
 * administrator any user's. */
static void
put_mps(struct instance *inst, const struct caller *who, struct jsonw *w, const struct card *c)
{
    const char *why = ledger_mps_why(inst->ledger, c, who->admin ? 0 : queue_user_of(who->uid));
    jsonw_kstr(w, "mps", why ? NULL : "on");
    jsonw_kstr(w, "mps_why", why && why[0] ? why : NULL);
}

/* Writes what enforces the jobs' VRAM on the GPU; or null, and why nothing does. */
static void
put_cap(const struct instance *inst, struct jsonw *w, const struct card *c)
{
    bool can = ledger_can_cap(inst->ledger, c) && !c->cap_refused[0];
    const char *cap = can ? gpu_cap_name(c->info.cap) : NULL;
    const char *why = inst->config.vram_cap == CONFIG_CAP_OFF
                          ? "the settings have vram_cap: off"
                      : c->cap_refused[0]  ? c->cap_refused
                      : c->info.cap_why[0] ? c->info.cap_why
                                           : "it has not been read since the daemon's start";
    jsonw_kstr(w, "cap", cap);
    jsonw_kstr(w, "cap_why", cap ? NULL : why);
}

static void
put_card(struct rpc *rpc, const struct caller *who, struct jsonw *w, const struct card *c)
{
    bool sampled = c->sampled_us > 0;
    jsonw_object(w);
    jsonw_kint(w, "index", c->info.index);
    jsonw_kstr(w, "uuid", c->info.uuid);
    jsonw_kstr(w, "name", c->info.name[0] ? c->info.name : NULL);
    jsonw_kstr(w, "vendor", gpu_vendor_name(c->info.vendor));
    jsonw_key(w, "compute_capability");
    if (c->info.cc > 0)
        jsonw_num(w, c->info.cc / 10.0);
    else
        jsonw_null(w);
    put_node(rpc, w, c);
    put_instance(w, &c->info);
    jsonw_kstr(w, "state", gpu_state_name(card_state(c)));
    put_cap(rpc->inst, w, c);
    put_mps(rpc->inst, who, w, c);
    health_write(rpc->cards, c->info.index, w);
    put_known(w, "total_mib", c->info.total_mib > 0 ? c->info.total_mib : -1);
    put_known(w, "used_mib", sampled ? c->used_mib : -1);
    jsonw_kint(w, "held_mib", c->held_mib);
    put_known(w, "external_mib", sampled ? c->external_mib : -1);
    put_known(w, "free_mib",
              !sampled || c->info.total_mib == 0 ? -1
              : c->headroom_mib > 0              ? c->headroom_mib
                                                 : 0);
    jsonw_knum(w, "share_held", (double)c->share_held / 1000);
    put_known(w, "util", sampled ? c->util : -1);
    put_known(w, "temperature_c", sampled ? c->temperature_c : -1);
    jsonw_karray(w, "jobs");
    for (int i = 0; i < c->n_holds; i++)
        jsonw_int(w, c->holds[i].job);
    jsonw_end_array(w);
    put_holds(rpc->inst, w, c);
    put_strangers(w, c);
    jsonw_end_object(w);
}

static void
put_cards(struct rpc *rpc, const struct caller *who, struct jsonw *w)
{
    jsonw_karray(w, "gpus");
    for (int i = 0; i < ledger_n_cards(rpc->inst->ledger); i++)
        if (!ledger_card(rpc->inst->ledger, i)->gone)
            put_card(rpc, who, w, ledger_card(rpc->inst->ledger, i));
    jsonw_end_array(w);
    jsonw_kstr(w, "backend", prober_backend(rpc->cards->prober));
    jsonw_kstr(w, "driver", prober_driver(rpc->cards->prober));
    jsonw_ktime(w, "unknown_since", prober_unknown_since_us(rpc->cards->prober));
    jsonw_kstr(w, "probe_error", prober_error(rpc->cards->prober));
    jsonw_kbool(w, "reads_kernel_log", prober_reads_log(rpc->cards->prober));
}

int
method_gpus(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out, struct err *e)
{
    (void)params;
    (void)e;
    /* The next sample updates it. */
    if (clock_boot_us() - prober_sampled_us(rpc->cards->prober) >
        rpc->inst->config.sample_ms * 1000)
        prober_request(rpc->cards->prober);
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    put_cards(rpc, c, out);
    jsonw_end_object(out);
    return 0;
}

/* Writes the folder shared by nodes if it is not the state folder, and the configured one if
 * it is not in use yet. */
static void
put_slurm(const struct rpc *rpc, struct jsonw *w)
{
    bool apart = shared_folder_is_apart(rpc->inst);
    auto_free char *jobs = apart ? shared_folder_path(rpc->inst, "jobs") : NULL;
    if (jobs)
        *strrchr(jobs, '/') = '\0';
    jsonw_kstr(w, "slurm_commands", rpc->inst->config.slurm_commands);
    jsonw_kstr(w, "slurm_folder", jobs);
    jsonw_kstr(w, "slurm_folder_next", slurm_folder_next(rpc->slurm));
    jsonw_kstr(w, "slurm_trouble", slurm_trouble(rpc->slurm));
}

static void
put_daemon(const struct rpc *rpc, struct jsonw *w)
{
    jsonw_kobject(w, "daemon");
    jsonw_kint(w, "pid", getpid());
    jsonw_kstr(w, "version", BERTH_VERSION);
    jsonw_kstr(w, "mode", rpc->inst->places.system ? "system" : "user");
    jsonw_knum(w, "uptime_s", (double)(clock_boot_us() - rpc->inst->started_boot_us) / 1e6);
    jsonw_kstr(w, "dir", rpc->inst->places.root);
    jsonw_kstr(w, "socket", rpc->inst->places.socket);
    jsonw_kstr(w, "state_dir", rpc->inst->places.state);
    jsonw_kstr(w, "log", log_path());
    jsonw_kstr(w, "log_to", logging_target());
    jsonw_kstr(w, "cgroup", nursery_place(rpc->attempts->nursery)->base);
    confines_write_filter(rpc->attempts, w);
    jsonw_key(w, "confinement");
    confine_write(nursery_place(rpc->attempts->nursery), w);
    jsonw_kbool(w, "leaves_when_idle", rpc->inst->leave_when_idle);
    put_slurm(rpc, w);
    jsonw_kbool(w, "stopping", rpc->inst->stopping);
    const struct err *trouble = turn_disk_trouble(rpc->inst);
    jsonw_kbool(w, "disk_full", trouble && trouble->code == ERR_NO_SPACE);
    jsonw_kstr(w, "disk_trouble", trouble ? trouble->text : NULL);
    jsonw_kstr(w, "start_trouble", machine_says(rpc->attempts));
    jsonw_kint(w, "clients", server_client_count(rpc->server));
    jsonw_end_object(w);
}

int
method_status(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    (void)params;
    (void)e;
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    put_daemon(rpc, out);
    jsonw_kobject(out, "counts");
    for (int s = 0; s < JOB_COMPLETED; s++)
        jsonw_kint(out, job_state_name((enum job_state)s),
                   queue_n_in(rpc->inst->queue, (enum job_state)s));
    jsonw_end_object(out);
    jsonw_kint(out, "priority_max", roles_priority_max(rpc->roles));
    jsonw_kint(out, "hooks_waiting", (int64_t)courier_count(rpc->courier));
    put_cards(rpc, c, out);
    jsonw_end_object(out);
    return 0;
}

int
method_stop(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out, struct err *e)
{
    bool cancel = json_is_true(json_object_get(params, "cancel"));
    size_t n;
    if (roles_need_admin(c, "stop the daemon", e) < 0)
        return -1;
    rpc->inst->stopping = true;
    rpc->inst->stop_when_empty = cancel;
    rpc->inst->stop_asked = true;
    if (cancel) { /* so that the rest of a jobs file does not follow the cancelled jobs */
        struct err stopping;
        err_set(&stopping, ERR_REFUSED, "the daemon is stopping and cancels all jobs");
        works_fail(rpc, &stopping);
    }
    auto_free struct job **jobs =
        queue_list_by_id(rpc->inst->queue, cancel ? QUEUE_ALL : 0, &n);
    for (size_t i = 0; i < n; i++)
        if (!job_state_is_final(jobs[i]->state))
            jobs_cancel(rpc->inst->state, jobs[i], daemon_user_name(c->uid));
    struct jsonw *event = turn_event(rpc->inst, "daemon", NULL);
    jsonw_kstr(event, "state", "stopping");
    jsonw_kstr(event, "by", daemon_user_name(c->uid));
    turn_event_end(rpc->inst);
    jsonw_object(out);
    jsonw_kint(out, "cancelled", cancel ? (int64_t)n : 0);
    jsonw_end_object(out);
    turn_touch(rpc->inst);
    return 0;
}
