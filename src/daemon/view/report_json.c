/* A report as JSON; docs/protocol.md says what the members mean. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/libc.h"
#include "core/learn/demands.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/view/report_data.h"

#define COMMAND_BYTES 400

static void
knum_or_null(struct jsonw *w, const char *key, double v, bool known)
{
    jsonw_key(w, key);
    if (known)
        jsonw_num(w, v);
    else
        jsonw_null(w);
}

static void
write_states(const struct report_sums *s, struct jsonw *w)
{
    jsonw_kobject(w, "states");
    for (int i = 0; i < JOB_STATES; i++)
        if (s->states[i])
            jsonw_kint(w, job_state_name((enum job_state)i), s->states[i]);
    jsonw_end_object(w);
}

/* Writes the members that every sum has. */
static void
write_sums(const struct report_sums *s, struct jsonw *w)
{
    jsonw_kint(w, "jobs", s->jobs);
    jsonw_kint(w, "ran", s->ran);
    write_states(s, w);
    jsonw_kint(w, "run_ms", s->run_ms);
    jsonw_kint(w, "gpu_ms", s->gpu_ms);
    jsonw_kint_or_null(w, "wait_mean_ms", spread_mean(&s->waits), s->waits.n > 0);
    jsonw_kint_or_null(w, "wait_p95_ms", spread_quantile(&s->waits, 950), s->waits.n > 0);
    jsonw_kint_or_null(w, "wait_max_ms", s->waits.max, s->waits.n > 0);
    jsonw_kint_or_null(w, "asked_mib", s->asked_mib, s->asked_mib > 0);
    jsonw_kint_or_null(w, "peak_mib", s->peaks.max, s->peaks.n > 0);
    jsonw_kint_or_null(w, "peak_p95_mib", spread_quantile(&s->peaks, 950), s->peaks.n > 0);
    jsonw_kint(w, "within", s->verdicts[VERDICT_WITHIN]);
    jsonw_kint(w, "under", s->verdicts[VERDICT_UNDER]);
    jsonw_kint(w, "over", s->verdicts[VERDICT_OVER]);
    jsonw_kint(w, "undeclared", s->verdicts[VERDICT_NONE]);
    jsonw_kint(w, "unattributed", s->verdicts[VERDICT_UNATTRIBUTED]);
    jsonw_kint(w, "wasted_mib_ms", s->wasted_mib_ms);
    knum_or_null(w, "util", s->util_count ? (double)s->util_sum / (double)s->util_count : 0,
                 s->util_count > 0);
}

static int
compare_users(const void *a, const void *b)
{
    const struct report_user *x = *(struct report_user *const *)a,
                             *y = *(struct report_user *const *)b;
    if (x->sums.gpu_ms != y->sums.gpu_ms)
        return x->sums.gpu_ms > y->sums.gpu_ms ? -1 : 1;
    return (x->uid > y->uid) - (x->uid < y->uid);
}

static void
write_users(const struct report *r, struct jsonw *w)
{
    unsigned n = HASH_COUNT(r->users), at = 0;
    auto_free struct report_user **list = xcalloc(n + 1, sizeof(struct report_user *));
    for (struct report_user *u = r->users; u; u = u->hh.next)
        list[at++] = u;
    qsort(list, n, sizeof *list, compare_users);
    jsonw_karray(w, "users");
    for (unsigned i = 0; i < n; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "user", daemon_user_name(list[i]->uid));
        jsonw_kint(w, "uid", list[i]->uid);
        write_sums(&list[i]->sums, w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static int
compare_commands(const void *a, const void *b)
{
    const struct report_command *x = *(struct report_command *const *)a,
                                *y = *(struct report_command *const *)b;
    if (x->sums.gpu_ms != y->sums.gpu_ms)
        return x->sums.gpu_ms > y->sums.gpu_ms ? -1 : 1;
    if (x->sums.jobs != y->sums.jobs)
        return x->sums.jobs > y->sums.jobs ? -1 : 1;
    return (x->newest < y->newest) - (x->newest > y->newest);
}

void
report_command_text(const struct report *r, const struct report_command *c, struct buf *out)
{
    struct err e;
    auto_buf struct buf json = BUF_INIT;
    struct jsonw w;
    if (report_is_hidden(r, c->key.uid))
        return;
    struct job *job = store_job_load(r->inst->store, c->newest, &e);
    if (!job)
        return; /* it was deleted meanwhile */
    jsonw_init(&w, &json);
    events_write_command(&w, job, COMMAND_BYTES);
    buf_add(out, json.data, json.len);
    job_free(job);
}

static void
write_command(const struct report *r, const struct report_command *c, struct jsonw *w)
{
    auto_buf struct buf command = BUF_INIT;
    struct learned known;
    const struct store_peaks_key key = {c->key.uid, c->key.fingerprint, c->gpus};
    struct err e;
    jsonw_object(w);
    jsonw_kstr(w, "user", daemon_user_name(c->key.uid));
    jsonw_kint(w, "uid", c->key.uid);
    jsonw_kstr(w, "fingerprint", report_is_hidden(r, c->key.uid) ? NULL : c->key.fingerprint);
    jsonw_kint(w, "newest", c->newest);
    jsonw_key(w, "command");
    report_command_text(r, c, &command);
    if (command.len)
        jsonw_raw(w, command.data, command.len);
    else
        jsonw_null(w);
    if (store_peaks_get(r->inst->store, &key, &known, &e) < 0)
        known = (struct learned){0};
    jsonw_kint_or_null(w, "learned_mib", learn_demand_mib(&known),
                       learn_demand_mib(&known) > 0);
    jsonw_kint(w, "learned_runs", known.n);
    write_sums(&c->sums, w);
    jsonw_end_object(w);
}

/* All commands, those with the most GPU time first; *n: their number. */
static const struct report_command **
list_commands(const struct report *r, int *n)
{
    const struct report_command **list =
        xcalloc(HASH_COUNT(r->commands) + 1, sizeof(struct report_command *));
    *n = 0;
    for (const struct report_command *c = r->commands; c; c = c->hh.next)
        list[(*n)++] = c;
    qsort(list, (size_t)*n, sizeof *list, compare_commands);
    return list;
}

static void
write_commands(const struct report *r, const struct report_command *const *list, int n,
               struct jsonw *w)
{
    int shown = n < r->commands_shown ? n : r->commands_shown;
    jsonw_karray(w, "commands");
    for (int i = 0; i < shown; i++)
        write_command(r, list[i], w);
    jsonw_end_array(w);
    jsonw_kint(w, "commands_total", n);
    jsonw_kint(w, "commands_untold", r->commands_left_out);
}

static const char *
cause_name(enum report_cause cause)
{
    static const char *const names[] = {
        [CAUSE_EXIT] = "exit",
        [CAUSE_SIGNAL] = "signal",
        [CAUSE_TIMEOUT] = "time_limit",
        [CAUSE_CUDA_OOM] = "cuda_oom",
        [CAUSE_HOST_OOM] = "host_oom",
        [CAUSE_NOT_STARTED] = "not_started",
        [CAUSE_LOST] = "lost",
        [CAUSE_CANCELLED] = "cancelled",
        [CAUSE_DEPENDENCY] = "dependency",
        [CAUSE_INFEASIBLE] = "infeasible",
        [CAUSE_PREEMPTED] = "preempted",
        [CAUSE_EXCEEDED] = "exceeded",
    };
    return names[cause];
}

static void
add_cause_text(const struct report_failure *f, struct buf *out)
{
    static const char *const words[] = {
        [CAUSE_EXIT] = "exit",
        [CAUSE_SIGNAL] = "killed by signal",
        [CAUSE_TIMEOUT] = "time limit reached",
        [CAUSE_CUDA_OOM] = "CUDA out of memory",
        [CAUSE_HOST_OOM] = "host out of memory",
        [CAUSE_NOT_STARTED] = "could not start",
        [CAUSE_LOST] = "lost (the machine or its supervisor went down)",
        [CAUSE_CANCELLED] = "cancelled",
        [CAUSE_DEPENDENCY] = "the job it depended on ended otherwise",
        [CAUSE_INFEASIBLE] = "could never start on this machine",
        [CAUSE_PREEMPTED] = "preempted by a job of higher priority",
        [CAUSE_EXCEEDED] = "used more VRAM than declared",
    };
    const char *name = f->cause == CAUSE_SIGNAL ? libc_signal_name(f->number) : NULL;
    buf_adds(out, words[f->cause]);
    if (f->cause == CAUSE_EXIT || f->cause == CAUSE_SIGNAL)
        buf_addf(out, " %d", f->number);
    if (name)
        buf_addf(out, " (%s)", name);
}

static int
compare_failures(const void *a, const void *b)
{
    const struct report_failure *x = a, *y = b;
    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return x->cause != y->cause ? (int)x->cause - (int)y->cause : x->number - y->number;
}

/* The job's display name: a task also has an id of its own. */
static void
write_name(const struct report *r, uint32_t id, struct jsonw *w)
{
    struct err e;
    struct job *job = store_job_load(r->inst->store, id, &e);

    jsonw_kstr(w, "newest_name", job ? job_words(job).text : NULL);
    if (job)
        job_free(job);
}

static void
write_causes(struct report *r, struct jsonw *w)
{
    qsort(r->failures, (size_t)r->n_failures, sizeof *r->failures, compare_failures);
    jsonw_karray(w, "causes");
    for (int i = 0; i < r->n_failures; i++) {
        const struct report_failure *f = &r->failures[i];
        auto_buf struct buf text = BUF_INIT;
        add_cause_text(f, &text);
        jsonw_object(w);
        jsonw_kstr(w, "cause", cause_name(f->cause));
        jsonw_kint_or_null(w, "number", f->number,
                           f->cause == CAUSE_EXIT || f->cause == CAUSE_SIGNAL);
        jsonw_kstr(w, "text", buf_str(&text));
        jsonw_kint(w, "jobs", f->jobs);
        jsonw_kint(w, "gpu_ms", f->gpu_ms);
        jsonw_kint(w, "newest", f->newest);
        write_name(r, f->newest, w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kint(w, "causes_untold", r->failures_left_out);
}

/* The length of bin i: the last may be shorter. */
static double
bin_length(const struct report *r, int i)
{
    int64_t width = report_bin_us(r), end = r->from_us + (i + 1) * width;
    int64_t length = end > r->until_us ? width - (end - r->until_us) : width;
    return length > 0 ? (double)length : 1;
}

static int
compare_cards(const void *a, const void *b)
{
    const struct report_card *x = a, *y = b;
    if (x->gone != y->gone)
        return x->gone - y->gone;
    return x->index != y->index ? x->index - y->index : strcmp(x->uuid, y->uuid);
}

static void
write_cards(struct report *r, struct jsonw *w)
{
    double span = r->until_us > r->from_us ? (double)(r->until_us - r->from_us) : 1;
    qsort(r->cards, (size_t)r->n_cards, sizeof *r->cards, compare_cards);
    jsonw_karray(w, "gpus");
    for (int c = 0; c < r->n_cards; c++) {
        const struct report_card *card = &r->cards[c];
        jsonw_object(w);
        jsonw_kint(w, "index", card->index);
        jsonw_kstr(w, "uuid", card->uuid);
        jsonw_kint_or_null(w, "total_mib", card->total_mib, card->total_mib > 0);
        jsonw_kbool(w, "gone", card->gone);
        jsonw_kint(w, "busy_ms", card->busy_us / 1000);
        knum_or_null(w, "busy", (double)card->busy_us / span, true);
        jsonw_kint(w, "runs", card->runs);
        jsonw_karray(w, "bins");
        for (int i = 0; i < r->bins; i++) {
            double length = bin_length(r, i);
            jsonw_array(w);
            jsonw_int(w, (int64_t)(card->bins[i].busy_us / length * 1000 + 0.5));
            jsonw_int(w, (int64_t)(card->bins[i].asked / length + 0.5));
            jsonw_int(w, (int64_t)(card->bins[i].used / length + 0.5));
            jsonw_end_array(w);
        }
        jsonw_end_array(w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
write_waits(const struct report *r, struct jsonw *w)
{
    jsonw_kobject(w, "waits");
    jsonw_karray(w, "below_ms");
    for (int i = 0; i < REPORT_WAIT_CLASSES - 1; i++)
        jsonw_int(w, report_wait_ms[i]);
    jsonw_end_array(w);
    jsonw_karray(w, "jobs");
    for (int i = 0; i < REPORT_WAIT_CLASSES; i++)
        jsonw_int(w, r->wait_classes[i]);
    jsonw_end_array(w);
    jsonw_karray(w, "bins");
    for (int i = 0; i < r->bins; i++) {
        const struct report_wait_bin *b = &r->wait_bins[i];
        jsonw_array(w);
        jsonw_int(w, b->jobs);
        jsonw_int(w, b->jobs ? (b->sum_ms + b->jobs / 2) / b->jobs : 0);
        jsonw_int(w, b->max_ms);
        jsonw_end_array(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void
write_scatter(const struct report *r, struct jsonw *w)
{
    jsonw_karray(w, "scatter");
    for (int i = 0; i < r->n_scatter; i++) {
        const struct report_point *p = &r->scatter[i];
        jsonw_array(w);
        jsonw_int(w, p->asked_mib);
        jsonw_int(w, p->peak_mib);
        jsonw_int(w, p->job);
        jsonw_str(w, daemon_user_name(p->uid));
        jsonw_end_array(w);
    }
    jsonw_end_array(w);
}

static void
write_frame(const struct report *r, struct jsonw *w)
{
    jsonw_ktime(w, "since", r->since_us);
    jsonw_ktime(w, "until", r->until_us);
    jsonw_kobject(w, "bins");
    jsonw_kint(w, "from_us", r->from_us);
    jsonw_kint(w, "width_us", report_bin_us(r));
    jsonw_kint(w, "n", r->bins);
    jsonw_end_object(w);
    jsonw_kobject(w, "total");
    write_sums(&r->total, w);
    jsonw_end_object(w);
}

void
report_write(struct report *r, struct buf *out)
{
    struct jsonw w;
    int n;
    auto_free const struct report_command **commands = list_commands(r, &n);
    jsonw_init(&w, out);
    jsonw_object(&w);
    write_frame(r, &w);
    if (r->parts & REPORT_USERS)
        write_users(r, &w);
    if (r->parts & REPORT_COMMANDS)
        write_commands(r, commands, n, &w);
    if (r->parts & REPORT_CAUSES)
        write_causes(r, &w);
    if (r->parts & REPORT_GPUS)
        write_cards(r, &w);
    if (r->parts & REPORT_WAITS)
        write_waits(r, &w);
    if (r->parts & REPORT_SCATTER)
        write_scatter(r, &w);
    if (r->parts & REPORT_ADVICE)
        report_write_advice(r, commands, n, &w);
    jsonw_end_object(&w);
}
