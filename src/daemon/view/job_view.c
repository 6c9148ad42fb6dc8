/* Jobs as JSON: one table of fields serves whole objects (queue --json, show) and rows (the
 * lists in a terminal, where 10,000 whole objects would be too slow). */
#include "daemon/view/job_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "daemon/attempt/cpu_nodes.h"
#include "daemon/attempt/log_names.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/view/expected_starts.h"
#include "daemon/view/views.h"
#include "daemon/view/wait_reason.h"
#include "spec/attr.h"
#include "store/store.h"

static const struct ending *
ending_of(const struct jobjson *x)
{
    static const struct ending none;
    return x->job->run ? &x->job->run->ending : &none;
}

static bool
has_ended(const struct jobjson *x)
{
    return job_state_is_final(x->job->state);
}

/* --- fields, in the order of an object --- */

#define FIELD(name) static void field_##name(const struct jobjson *x, struct jsonw *w)
/* Fields hidden from other users if the settings say so. */
#define PERSONAL(name)                                                                         \
    static void shown_##name(const struct jobjson *x, struct jsonw *w);                        \
    FIELD(name)                                                                                \
    {                                                                                          \
        if (roles_is_hidden(x->views->roles, x->job->uid))                                     \
            jsonw_null(w);                                                                     \
        else                                                                                   \
            shown_##name(x, w);                                                                \
    }                                                                                          \
    static void shown_##name(const struct jobjson *x, struct jsonw *w)

FIELD(id)
{
    jsonw_int(w, x->job->id);
}

FIELD(user)
{
    jsonw_str(w, daemon_owner_name(x->job));
}

FIELD(uid)
{
    jsonw_int(w, x->job->uid);
}

PERSONAL(command)
{
    bool whole = roles_sees_whole(x->views->roles, x->job->uid);
    events_write_command(w, x->job, whole ? 0 : ROLES_OTHERS_TEXT_MAX);
}

/* True for an array whose tasks have all started, while some of them run. */
static bool
only_runs(const struct job *job)
{
    return job->tasks && job->tasks->live > 0 && array_next(job) < 0 &&
           !job_state_is_final(job->state);
}

FIELD(state)
{
    jsonw_str(w, job_state_name(only_runs(x->job) ? JOB_RUNNING : x->job->state));
}

FIELD(reason)
{
    struct blocked why;
    why_blocked(x->views, x->job, &why);
    if (why.reason == REASON_NONE || only_runs(x->job))
        jsonw_null(w);
    else
        jsonw_str(w, reason_name(why.reason));
}

static void
explain_waiting(const struct jobjson *x, struct buf *text)
{
    struct blocked why;
    why_waits(x->views, x->job, &why, text);
}

FIELD(explain)
{
    auto_buf struct buf text = BUF_INIT;
    if (has_ended(x) && !roles_is_hidden(x->views->roles, x->job->uid))
        job_end_text(x->job, &text); /* the text may quote the log */
    else if (!has_ended(x) && !only_runs(x->job))
        explain_waiting(x, &text);
    jsonw_str(w, text.len ? buf_str(&text) : NULL);
}

PERSONAL(text)
{
    auto_buf struct buf text = BUF_INIT;
    if (has_ended(x))
        job_end_text(x->job, &text);
    jsonw_str(w, text.len ? buf_str(&text) : NULL);
}

FIELD(gpus)
{
    const struct attempt *run = x->job->run;
    bool holds = run && (job_state_is_active(x->job->state) || has_ended(x));
    jsonw_array(w);
    for (int i = 0; holds && i < run->n_gpus; i++) {
        jsonw_object(w);
        jsonw_kint(w, "index", run->gpus[i]);
        jsonw_kstr(w, "uuid",
                   x->uuids ? x->uuids[i]
                            : ledger_card(x->views->inst->ledger, run->gpus[i])->info.uuid);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

FIELD(declared_mib)
{
    jsonw_int_or_null(w, x->job->declared_mib, x->job->declared_mib > 0);
}

FIELD(cpus)
{
    int32_t cpus = demand_cpus(&x->job->req.demand); /* a job without GPU books one */
    jsonw_int_or_null(w, cpus, cpus > 0);
}

FIELD(submitted)
{
    jsonw_time(w, x->job->submitted_us);
}

FIELD(started)
{
    jsonw_time(w, x->job->run ? x->job->run->started_us : 0);
}

FIELD(ended)
{
    jsonw_time(w, has_ended(x) ? x->job->ended_us : 0);
}

FIELD(run_ms)
{
    const struct attempt *run = x->job->run;
    if (run && run->ending.outcome != OUTCOME_NONE)
        jsonw_int(w, run->ending.run_ms);
    else if (run && run->started_us)
        jsonw_int(w, (clock_wall_us() - run->started_us) / 1000);
    else
        jsonw_null(w);
}

/* Wait until the first start. */
FIELD(wait_ms)
{
    const struct job *job = x->job;
    int64_t from_us =
        job->req.begin_us > job->submitted_us ? job->req.begin_us : job->submitted_us;
    int64_t started_us = job->run ? job->run->started_us : 0;
    struct store_attempt *all = NULL;
    struct err e;
    int n =
        job->attempts > 1 ? store_attempts_load(x->views->inst->store, job->id, &all, &e) : 0;
    for (int i = n - 1; i >= 0; i--)
        started_us = all[i].attempt.started_us ? all[i].attempt.started_us : started_us;
    if (n > 0)
        store_attempts_free(all, n);
    jsonw_int_or_null(w, started_us > from_us ? (started_us - from_us) / 1000 : 0,
                      started_us > 0);
}

FIELD(exit_code)
{
    const struct ending *e = ending_of(x);
    jsonw_int_or_null(w, e->code, has_ended(x) && e->outcome == OUTCOME_EXITED);
}

FIELD(signal)
{
    const struct ending *e = ending_of(x);
    jsonw_int_or_null(w, e->signal, has_ended(x) && e->signal > 0);
}

FIELD(exit_status)
{
    jsonw_int_or_null(w, has_ended(x) ? job_exit_status(x->job) : 0, has_ended(x));
}

FIELD(log_cut_bytes)
{
    jsonw_int(w, ending_of(x)->log_cut_bytes);
}

FIELD(attempt)
{
    jsonw_int(w, x->job->attempts);
}

FIELD(peak_mib)
{
    const struct attempt *run = x->job->run;
    jsonw_object(w);
    for (int i = 0; run && i < run->n_gpus; i++) {
        char key[12];
        snprintf(key, sizeof key, "%d", run->gpus[i]);
        jsonw_kint_or_null(w, key, run->peak_mib[i], run->peak_mib[i] >= 0);
    }
    if (run && run->sent.key[0])
        jsonw_kint_or_null(w, "max", run->sent.peak_mib, run->sent.peak_mib >= 0);
    jsonw_end_object(w);
}

FIELD(now_mib)
{
    const struct attempt *run = x->job->run;
    int64_t sum = 0;
    bool known = false;
    for (int i = 0; run && i < run->n_gpus; i++) {
        known |= run->now_mib[i] >= 0;
        sum += run->now_mib[i] >= 0 ? run->now_mib[i] : 0;
    }
    jsonw_int_or_null(w, sum, known && job_state_is_active(x->job->state));
}

FIELD(use_mib)
{
    const struct attempt *run = job_state_is_active(x->job->state) ? x->job->run : NULL;
    jsonw_object(w);
    for (int i = 0; run && i < run->n_gpus; i++) {
        char key[12];
        snprintf(key, sizeof key, "%d", run->gpus[i]);
        jsonw_kint_or_null(w, key, run->now_mib[i], run->now_mib[i] >= 0);
    }
    jsonw_end_object(w);
}

FIELD(pid)
{
    const struct attempt *run = job_state_is_active(x->job->state) ? x->job->run : NULL;
    jsonw_int_or_null(w, run ? run->command_pid : 0, run && run->command_pid > 0);
}

FIELD(util)
{
    int util = x->job->run ? attempt_util(x->job->run) : -1;
    jsonw_int_or_null(w, util, util >= 0);
}

FIELD(energy_j)
{
    int64_t mj = x->job->run ? x->job->run->energy_mj : 0;
    jsonw_int_or_null(w, (mj + 500) / 1000, mj > 0);
}

FIELD(verdict)
{
    const struct job *job = x->job;
    enum verdict v = VERDICT_NONE;
    if (job->state == JOB_COMPLETED && job->run)
        v = account_verdict(job->run->vram_mib, attempt_peak_mib(job->run),
                            (int32_t)(x->views->inst->config.tolerance * 1000 + 0.5));
    jsonw_str(w, verdict_name(v));
}

PERSONAL(log)
{
    auto_free char *log = launch_log_path(x->views->inst, x->job);
    jsonw_str(w, log);
}

PERSONAL(error)
{
    auto_free char *error = launch_error_path(x->views->inst, x->job);
    jsonw_str(w, error);
}

PERSONAL(attach)
{
    auto_free char *path = launch_attach_path(x->views->inst, x->job);
    jsonw_str(w, path);
}

PERSONAL(cwd)
{
    jsonw_str(w, x->job->cwd);
}

PERSONAL(file)
{
    struct err e;
    auto_free char *path =
        x->job->file ? store_file_path(x->views->inst->store, x->job->file, &e) : NULL;
    jsonw_str(w, path);
}

FIELD(line)
{
    jsonw_int_or_null(w, x->job->line, x->job->line > 0);
}

PERSONAL(key)
{
    jsonw_str(w, x->job->key);
}

FIELD(expected_start)
{
    jsonw_time(w, forecast_start_us(x->views, x->job));
}

FIELD(latest_start)
{
    const struct promise *promised = planner_promise_of(x->views->inst->planner, x->job->id);
    jsonw_time(w, promised ? promised->at_us : 0);
}

FIELD(cancelled_by)
{
    jsonw_str(w, x->job->cancelled_by);
}

/* Writes the NUMA nodes the attempt is or was bound to. The nodes are stored with the attempt;
 * their CPUs are the current ones. */
static void
write_nodes(const struct views *views, struct jsonw *w, const struct attempt *a)
{
    auto_buf struct buf cpus = BUF_INIT;
    jsonw_karray(w, "numa_nodes");
    for (uint64_t rest = (uint64_t)a->nodes; rest; rest &= rest - 1)
        jsonw_int(w, __builtin_ctzll(rest));
    jsonw_end_array(w);
    cpu_nodes_add_cpus(views->attempts, (uint64_t)a->nodes, &cpus);
    jsonw_kstr(w, "cpu_list", cpus.len ? buf_str(&cpus) : NULL);
}

static void
write_attempt(const struct views *views, struct jsonw *w, const struct attempt *a)
{
    const struct ending *e = &a->ending;
    auto_buf struct buf text = BUF_INIT;
    bool over = e->outcome != OUTCOME_NONE;
    jsonw_object(w);
    jsonw_kint(w, "number", a->number);
    events_write_gpus(w, a);
    if (a->sent.key[0]) {
        jsonw_kstr(w, "slurm_job", a->sent.id[0] ? a->sent.id : NULL);
        jsonw_kstr(w, "slurm_node", a->sent.node[0] ? a->sent.node : NULL);
    }
    jsonw_kint_or_null(w, "vram_mib", a->vram_mib, a->vram_mib > 0);
    jsonw_kint_or_null(w, "cap_mib", a->cap_mib, a->cap_mib > 0);
    write_nodes(views, w, a);
    jsonw_kint_or_null(w, "energy_j", (a->energy_mj + 500) / 1000, a->energy_mj > 0);
    jsonw_ktime(w, "started", a->started_us);
    jsonw_ktime(w, "ended", over ? e->ended_us : 0);
    jsonw_kint_or_null(w, "run_ms", e->run_ms, over);
    jsonw_kstr(w, "outcome", over ? outcome_name(e->outcome) : NULL);
    jsonw_kint_or_null(w, "exit_code", e->code, e->outcome == OUTCOME_EXITED);
    jsonw_kint_or_null(w, "signal", e->signal, e->signal > 0);
    events_write_peaks(w, a);
    jsonw_kint(w, "log_cut_bytes", e->log_cut_bytes);
    if (over)
        attempt_end_text(a, &text);
    jsonw_kstr(w, "text", text.len ? buf_str(&text) : NULL);
    jsonw_end_object(w);
}

PERSONAL(attempts)
{
    const struct job *job = x->job;
    struct store_attempt *all = NULL;
    struct err e;
    jsonw_array(w);
    int n =
        job->attempts > 1 ? store_attempts_load(x->views->inst->store, job->id, &all, &e) : 0;
    for (int i = 0; i < n; i++)
        if (!job->run || all[i].attempt.number != job->run->number)
            write_attempt(x->views, w, &all[i].attempt);
    if (n > 0)
        store_attempts_free(all, n);
    if (job->run)
        write_attempt(x->views, w, job->run);
    jsonw_end_array(w);
}

static const struct jobjson_entry fields[] = {
    {"id", field_id, NULL},
    {"name", NULL, NULL},
    {"user", field_user, NULL},
    {"uid", field_uid, NULL},
    {"command", field_command, NULL},
    {"state", field_state, NULL},
    {"reason", field_reason, NULL},
    {"explain", field_explain, NULL},
    {"gpus", field_gpus, NULL},
    {"gpus_wanted", NULL, NULL},
    {"vram_mib", NULL, NULL},
    {"declared_mib", field_declared_mib, NULL},
    {"exclusive", NULL, NULL},
    {"cpus", field_cpus, NULL},
    {"mem_mib", NULL, NULL},
    {"priority", NULL, NULL},
    {"limit_ms", NULL, NULL},
    {"submitted", field_submitted, NULL},
    {"started", field_started, NULL},
    {"ended", field_ended, NULL},
    {"run_ms", field_run_ms, NULL},
    {"wait_ms", field_wait_ms, NULL},
    {"exit_code", field_exit_code, NULL},
    {"signal", field_signal, NULL},
    {"exit_status", field_exit_status, NULL},
    {"attempts", field_attempts, NULL},
    {"attempt", field_attempt, NULL},
    {"peak_mib", field_peak_mib, NULL},
    {"now_mib", field_now_mib, NULL},
    {"use_mib", field_use_mib, NULL},
    {"pid", field_pid, NULL},
    {"util", field_util, NULL},
    {"energy_j", field_energy_j, NULL},
    {"verdict", field_verdict, NULL},
    {"log", field_log, NULL},
    {"log_max_mib", NULL, NULL},
    {"log_cut_bytes", field_log_cut_bytes, NULL},
    {"error", field_error, NULL},
    {"attach", field_attach, NULL},
    {"cwd", field_cwd, NULL},
    {"file", field_file, NULL},
    {"line", field_line, NULL},
    {"key", field_key, NULL},
    {"expected_start", field_expected_start, NULL},
    {"latest_start", field_latest_start, NULL},
    {"cancelled_by", field_cancelled_by, NULL},
    {"oom_retries", NULL, NULL},
    {"retries", NULL, NULL},
    {"text", field_text, NULL},
    {NULL, NULL, NULL},
};

/* Written only if requested by name: it repeats what other fields say. */
static const struct jobjson_entry submission = {"submission", jobjson_submission, NULL};

/* These fields, followed by all other attributes; built on first use. */
static struct jobjson_entry all[128];
static size_t n_all;

static const char *
name_of(const struct attr *a)
{
    return a->json ? a->json : a->key;
}

static const struct attr *
row_called(const char *name)
{
    const struct attr *a;
    for (size_t i = 0; (a = attr_at(i)); i++)
        if (a->key && !a->unshown && strcmp(name_of(a), name) == 0)
            return a;
    return NULL;
}

static void
add_entry(struct jobjson_entry entry)
{
    if (n_all == sizeof all / sizeof all[0])
        err_abort("a job has more than %zu fields", n_all);
    if (!entry.write && !entry.attr)
        entry.attr = row_called(entry.name);
    if (!entry.write && !entry.attr)
        err_abort("no row says how %s is shown", entry.name);
    all[n_all++] = entry;
}

static void
make_all(void)
{
    const struct attr *a;
    if (n_all)
        return;
    for (const struct jobjson_entry *f = fields; f->name; f++)
        add_entry(*f);
    for (const struct jobjson_entry *f = jobjson_request; f->name; f++)
        add_entry(*f);
    for (size_t i = 0; (a = attr_at(i)); i++)
        if (a->key && !a->unshown && !jobjson_find(name_of(a)))
            add_entry((struct jobjson_entry){name_of(a), NULL, a});
}

void
jobjson_value(const struct jobjson_entry *f, const struct jobjson *x, struct jsonw *w)
{
    if (f->write)
        f->write(x, w);
    else
        jobjson_attr(f->attr, x, w);
}

void
jobjson_object(const struct jobjson *x, struct jsonw *w)
{
    make_all();
    jsonw_object(w);
    for (size_t i = 0; i < n_all; i++) {
        jsonw_key(w, all[i].name);
        jobjson_value(&all[i], x, w);
    }
    jsonw_end_object(w);
}

size_t
jobjson_count(void)
{
    make_all();
    return n_all + 1;
}

const struct jobjson_entry *
jobjson_find(const char *name)
{
    make_all();
    for (size_t i = 0; i < n_all; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return strcmp(name, submission.name) == 0 ? &submission : NULL;
}
