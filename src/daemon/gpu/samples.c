/* Samples: see samples.h. A process belongs to a job if it is in the job's cgroup, or carries
 * the job's mark and runs as the job's user, or descends from the job's supervisor: the
 * supervisor is a subreaper, so double forks and setsid do not escape it. A process for which
 * none of this can be read (another pid namespace) counts as another program's, without
 * guessing. */
#include "daemon/gpu/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/clock_watch.h"
#include "daemon/common/event_say.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/probe_json.h"
#include "daemon/gpu/telemetry.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"
#include "spec/value.h"
#include "sys/confine.h"
#include "sys/mps_place.h"
#include "sys/procs.h"

#define PIDS_MAX (1 << 22) /* the kernel's maximum */

/* --- processes --- */

/* id if this attempt of the job is active, else 0. */
static uint32_t
active_job(const struct instance *inst, uint32_t id, int32_t attempt)
{
    const struct job *job = queue_get(inst->queue, id);
    return job && job->run && job->run->number == attempt ? id : 0;
}

/* True if groups named like ours in that folder can be ours, as any user may give a group such
 * a name. Units of earlier daemons are beside our own. */
static bool
is_our_folder(const struct cards *cards, const char *path, size_t len)
{
    static const char SLICE[] = "/berth.slice/";
    const char *base = cards->host.place(cards->host.arg)->base;
    size_t n = base ? strlen(base) : 0;
    return !cards->inst->places.system || strncmp(path, SLICE, sizeof SLICE - 1) == 0 ||
           (base && n >= len && memcmp(base + n - len, path, len) == 0);
}

/* Finds the job by the cgroup ".../berth-XXXXXXXX/job-ID.ATTEMPT" in the v2 tree; 0: not
 * found. */
static uint32_t
job_of_group(const struct cards *cards, pid_t pid)
{
    char path[4096], mine[32];
    uint32_t id;
    int32_t attempt;
    if (!proc_cgroup(pid, path, sizeof path))
        return 0;
    int n = snprintf(mine, sizeof mine, "/berth-%.8s/", cards->inst->name);
    const char *at = strstr(path, mine);
    if (!at || sscanf(at + n, "job-%" SCNu32 ".%" SCNd32, &id, &attempt) != 2 ||
        !is_our_folder(cards, path, (size_t)(at - path) + (size_t)n - 1))
        return 0;
    return active_job(cards->inst, id, attempt);
}

/* Finds the job by the mark in the process's environment, which counts only if the process
 * runs as the job's user or in a container. Needed because what a container daemon starts for
 * a job is neither in a cgroup of ours nor a descendant. */
static uint32_t
job_of_mark(const struct instance *inst, pid_t pid)
{
    char mark[256], instance[32];
    uint32_t id;
    int32_t attempt;
    if (!proc_mark(pid, mark, sizeof mark) ||
        sscanf(mark, "%31[^:]:%" SCNu32 ".%" SCNd32, instance, &id, &attempt) != 3 ||
        strcmp(instance, inst->name) != 0 || !active_job(inst, id, attempt))
        return 0;
    return !inst->places.system || proc_speaks_for(pid, queue_get(inst->queue, id)->uid) ? id
                                                                                         : 0;
}

/* The depth is bounded because a pid reused while the chain is read could make it a cycle. */
static uint32_t
job_of_ancestors(const struct cards *cards, pid_t pid)
{
    struct proc p;
    for (int depth = 0; depth < PIDS_MAX && pid > 1 && proc_read(pid, &p) == 0; depth++) {
        uint32_t job = cards->host.job_of_supervisor(cards->host.arg, pid);
        if (job)
            return job;
        pid = p.ppid;
    }
    return 0;
}

static uint32_t
job_of_process(const struct cards *cards, pid_t pid, int64_t *start)
{
    struct proc p;
    *start = 0;
    if (pid <= 1 || proc_read(pid, &p) < 0)
        return 0;
    *start = (int64_t)p.start_ticks;
    uint32_t job = job_of_group(cards, pid);
    if (!job)
        job = job_of_mark(cards->inst, pid);
    return job ? job : job_of_ancestors(cards, pid);
}

uint32_t
sample_job_of_pid(const struct cards *cards, int32_t pid)
{
    int64_t start;
    return job_of_process(cards, pid, &start);
}

static struct gpu_proc *
read_procs(struct cards *cards, int card, const json_t *list, int32_t *n)
{
    size_t i;
    const json_t *j;
    if (!json_is_array(list)) {
        *n = -1;
        return NULL;
    }
    size_t n_procs = json_array_size(list);
    struct gpu_proc *procs = xcalloc(n_procs + 1, sizeof *procs);
    struct mps_state said;
    bool is_said =
        n_procs > 0 &&
        cards->host.mps_said(cards->host.arg, card, &said); /* whatever the settings are now */
    *n = 0;
    json_array_foreach(list, i, j)
    {
        struct gpu_proc *p = &procs[*n];
        p->pid = (int32_t)probejson_int(json_object_get(j, "pid"), 0);
        p->mib = (int32_t)probejson_int(json_object_get(j, "mib"), -1);
        p->uid = probejson_int(json_object_get(j, "uid"), -1);
        p->only_draws = json_is_true(json_object_get(j, "only_draws"));
        p->job = job_of_process(cards, p->pid, &p->start);
        if (p->job)
            health_own_process(cards, p->pid, p->job);
        if (p->job || !is_said || !mps_has_process(&said, p->pid))
            (*n)++;
    }
    return procs;
}

/* Reads the cgroups of capped jobs on the GPU. */
static struct gpu_group *
read_groups(const struct instance *inst, const json_t *list, int32_t *n)
{
    size_t i;
    const json_t *j;
    struct gpu_group *groups = xcalloc(json_array_size(list) + 1, sizeof *groups);
    *n = 0;
    json_array_foreach(list, i, j)
    {
        const char *name = json_string_value(json_object_get(j, "group"));
        const char *slash = name ? strrchr(name, '/') : NULL;
        uint32_t id;
        int32_t attempt;
        if (!name ||
            sscanf(slash ? slash + 1 : name, "job-%" SCNu32 ".%" SCNd32, &id, &attempt) != 2 ||
            !active_job(inst, id, attempt))
            continue;
        groups[(*n)++] = (struct gpu_group){
            .job = id,
            .mib = (int32_t)probejson_int(json_object_get(j, "mib"), -1),
            .peak_mib = (int32_t)probejson_int(json_object_get(j, "peak_mib"), -1)};
    }
    return groups;
}

/* --- what the jobs used --- */

/* If the settings end jobs that exceed their VRAM, that applies to all jobs; otherwise the
 * job's own setting takes precedence over those for its GPU. A capped job can exceed its VRAM
 * only by the tolerance, so it is only warned. */
static enum on_exceed
exceed_rule(const struct instance *inst, const struct job *job, int card)
{
    static const enum on_exceed all[] = {[CONFIG_EXCEED_WARN] = ON_EXCEED_WARN,
                                         [CONFIG_EXCEED_KILL] = ON_EXCEED_KILL,
                                         [CONFIG_EXCEED_IGNORE] = ON_EXCEED_IGNORE};
    enum on_exceed cards[GPU_MAX] = {ON_EXCEED_DEFAULT};
    enum on_exceed rule = all[inst->config.on_exceed], own = job->req.on_exceed;
    (void)value_exceed_rules(inst->config.on_exceed_gpus, cards, NULL); /* validated before */
    if (cards[card] != ON_EXCEED_DEFAULT)
        rule = cards[card];
    if (rule != ON_EXCEED_KILL && own != ON_EXCEED_DEFAULT)
        rule = own;
    return rule == ON_EXCEED_KILL && job->run->cap_mib > 0 ? ON_EXCEED_WARN : rule;
}

static void
say_excess(struct instance *inst, const struct job *job, const struct ledger_excess *x)
{
    log_warn("job=%u event=exceeds gpu=%d mib=%d declared_mib=%d", x->job, x->card, x->mib,
             x->declared_mib);
    struct jsonw *w = turn_event(inst, "exceeds", job);
    jsonw_kint(w, "gpu", x->card);
    jsonw_kint(w, "mib", x->mib);
    jsonw_kint(w, "declared_mib", x->declared_mib);
    turn_event_end(inst);
}

static void
on_excess(void *arg, const struct ledger_excess *x)
{
    struct cards *cards = arg;
    struct job *job = queue_get(cards->inst->queue, x->job);
    if (!job || !job->run)
        return;
    enum on_exceed rule = exceed_rule(cards->inst, job, x->card);
    if (rule == ON_EXCEED_IGNORE)
        return;
    if (!x->is_sure || !job->run->warned)
        say_excess(cards->inst, job, x);
    job->run->warned = true;
    if (rule == ON_EXCEED_KILL && x->is_sure)
        cards->host.on_excess(cards->host.arg, job);
}

/* Energy from the start of the job's command to its end, as far as measured. */
static int64_t
energy_mj(const struct instance *inst, const struct job *job, int card)
{
    const struct attempt *run = job->run;
    int64_t from_us = run->started_us + run->clock_set_us - (clock_wall_us() - clock_boot_us());
    int64_t to_us = job->state == JOB_COMPLETING ? run->ended_boot_us : INT64_MAX;
    return run->started_us > 0 ? ledger_energy_mj(inst->ledger, card, from_us, to_us) : 0;
}

/* Copies what the ledger has measured into the attempt. A peak that grew by more than a
 * sixteenth is stored, so that an OOM retry after a daemon crash can use it. */
static void
update_usage(struct cards *cards, struct job *job)
{
    struct attempt *run = job->run;
    bool grown = false;
    for (int i = 0; i < run->n_gpus; i++) {
        const struct card *c = ledger_card(cards->inst->ledger, run->gpus[i]);
        const struct hold *h = ledger_find_hold(cards->inst->ledger, run->gpus[i], job->id);
        if (!h)
            continue;
        run->now_mib[i] = h->now_mib;
        grown |= h->peak_mib > 0 && h->peak_mib > run->peak_mib[i] + run->peak_mib[i] / 16;
        run->peak_mib[i] = h->peak_mib;
        if (c->util >= 0 && job->state == JOB_RUNNING) {
            run->util_sum += c->util;
            run->util_count++;
        }
        run->energy_mj += energy_mj(cards->inst, job, run->gpus[i]);
    }
    telemetry_job(cards, job);
    if (grown) {
        state_save(cards->inst->state, job, SAVE_ATTEMPT);
        struct jsonw *w = turn_event(cards->inst, "usage", job);
        events_write_peaks(w, run);
        turn_event_end(cards->inst);
    }
}

static void
update_jobs(struct cards *cards)
{
    struct job *next;
    for (struct job *job = queue_active(cards->inst->queue); job; job = next) {
        next = queue_active_next(job);
        if (job->run->n_gpus > 0)
            update_usage(cards, job);
        if (job->state == JOB_COMPLETING)
            jobs_check_clear(cards->inst->state, job, false);
    }
}

/* --- one sample --- */

static enum health_memory
read_memory(const json_t *v)
{
    static const char *const names[] = {
        [HEALTH_MEMORY_UNKNOWN] = "",
        [HEALTH_MEMORY_FINE] = "fine",
        [HEALTH_MEMORY_PENDING] = "pending",
        [HEALTH_MEMORY_FAILED] = "failed",
    };
    const char *name = json_string_value(v);
    for (int i = 1; name && i <= HEALTH_MEMORY_FAILED; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum health_memory)i;
    return HEALTH_MEMORY_UNKNOWN;
}

/* The job of a process that was in no sample while it lived: the job on this GPU whose command
 * it is; or the GPU's only job, if no other programs are there. had_others: another program
 * was in the previous sample, so the peak may be that program's. */
static uint32_t
job_of_unseen(const struct instance *inst, int card, int32_t pid, bool had_others)
{
    const struct card *c = ledger_card(inst->ledger, card);
    for (int i = 0; i < c->n_holds; i++) {
        const struct job *job = queue_get(inst->queue, c->holds[i].job);
        if (job && job->run && job->run->command_pid == pid)
            return job->id;
    }
    return c->n_holds == 1 && c->n_strangers == 0 && !had_others ? c->holds[0].job : 0;
}

/* Takes the driver's record of each process's peak, if accounting is on: at least what the job
 * used, and often more than the samples show. */
static void
take_peaks(struct cards *cards, int card, const json_t *list, bool had_others)
{
    size_t i;
    const json_t *j;
    json_array_foreach(list, i, j)
    {
        int32_t peak_mib = (int32_t)probejson_int(json_object_get(j, "peak_mib"), -1);
        int32_t pid = (int32_t)probejson_int(json_object_get(j, "pid"), 0);
        uint32_t job = health_owner_of(cards, pid);
        if (!job)
            job = job_of_unseen(cards->inst, card, pid, had_others);
        if (job && peak_mib > 0)
            ledger_restore_peak(cards->inst->ledger, card, job, peak_mib);
    }
}

static void
take_one(struct cards *cards, const json_t *j, int64_t asked_us, uint64_t *seen)
{
    const char *uuid = json_string_value(json_object_get(j, "uuid"));
    int card = uuid ? ledger_find_uuid(cards->inst->ledger, uuid) : -1;
    if (card < 0)
        return;
    *seen |= UINT64_C(1) << card;
    if (json_is_true(json_object_get(j, "unreadable"))) {
        health_unreadable(cards, card);
        return;
    }
    struct gpu_sample s = {
        .used_mib = probejson_int(json_object_get(j, "used_mib"), -1),
        .util = (int32_t)probejson_int(json_object_get(j, "util"), -1),
        .temperature_c = (int32_t)probejson_int(json_object_get(j, "temperature_c"), -1),
        .energy_mj = probejson_int(json_object_get(j, "energy_mj"), 0),
    };
    struct gpu_proc *procs = read_procs(cards, card, json_object_get(j, "procs"), &s.n_procs);
    s.procs = procs;
    struct gpu_group *groups =
        read_groups(cards->inst, json_object_get(j, "groups"), &s.n_groups);
    s.groups = groups;
    bool had_others = ledger_card(cards->inst->ledger, card)->n_strangers > 0;
    ledger_sample(cards->inst->ledger, card, &s, asked_us, on_excess, cards);
    take_peaks(cards, card, json_object_get(j, "procs"), had_others);
    take_peaks(cards, card, json_object_get(j, "ended"), had_others);
    telemetry_card(cards, card);
    health_seen(cards, card, read_memory(json_object_get(j, "memory")));
    free(procs);
    free(groups);
}

void
sample_card_event(struct instance *inst, int card, const char *state, const char *text,
                  const char *by)
{
    const struct card *c = ledger_card(inst->ledger, card);
    log_warn("event=gpu gpu=%d uuid=%s state=%s %s", card, c->info.uuid, state, text);
    struct jsonw *w = turn_event(inst, "gpu", NULL);
    jsonw_kint(w, "gpu", card);
    jsonw_kstr(w, "uuid", c->info.uuid);
    jsonw_kstr(w, "state", state);
    if (by)
        jsonw_kstr(w, "by", by);
    jsonw_kstr(w, "text", text);
    turn_event_end(inst);
}

void
sample_take(struct cards *cards, const json_t *sample, int64_t asked_us)
{
    uint64_t seen = 0;
    size_t i;
    const json_t *j;
    /* the wall clock may have been set since */
    ledger_set_wall_offset(cards->inst->ledger, clock_wall_us() - clock_boot_us());
    clock_watch_look(&cards->inst->clock);
    cards->host.on_sample(cards->host.arg);
    json_array_foreach(json_object_get(sample, "gpus"), i, j)
        take_one(cards, j, asked_us, &seen);
    for (int c = 0; c < ledger_n_cards(cards->inst->ledger); c++) {
        if (!(seen & (UINT64_C(1) << c)) && !ledger_card(cards->inst->ledger, c)->gone)
            health_missing(cards, c);
    }
    update_jobs(cards);
}
