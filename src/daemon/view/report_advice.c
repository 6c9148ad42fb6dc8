/* The suggestions of a report: another demand if the runs of a command call for it, and a
 * check of jobs that leave their GPUs idle. A suggestion rests on observed runs; nothing is
 * suggested for other users' commands that are private. Called by report_json.c. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/learn/demands.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/view/report_data.h"

#define ADVICE_MAX       20
#define COMMANDS_LOOKED  300            /* with the most GPU time */
#define LOW_LOAD_PERCENT 10             /* average load below which a GPU counts as idle */
#define LOW_LOAD_GPU_MS  (30 * 60000LL) /* minimum GPU time for a suggestion */
#define OOM_SHARE        20             /* one in this many; fewer may be chance */
#define SHARES_PERCENT   60             /* of a GPU: a job that needs less could share it */

enum advice_kind { ASK_LESS, ASK_MORE, OUT_OF_MEMORY, UNDECLARED, LOW_LOAD };

struct advice {
    enum advice_kind kind;
    double weight; /* MiB x ms it would free or save */
    uint32_t uid;
    const struct report_command *command; /* NULL: about a user */
    const struct report_sums *sums;
    int64_t jobs;
    int32_t ask_mib;   /* 0: no demand to suggest */
    int64_t limit_mib; /* of the largest GPU, if more than that is needed; else 0 */
};

struct list {
    const struct report *report;
    struct advice *v;
    size_t n, cap;
};

static void
add(struct list *l, struct advice a)
{
    l->v = xgrow(l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = a;
}

/* The demand to suggest; 0: the runs do not determine one. */
static int32_t
demand_of(const struct report *r, const struct report_command *c)
{
    const struct store_peaks_key key = {c->key.uid, c->key.fingerprint, c->gpus};
    struct learned known;
    struct err e;
    if (store_peaks_get(r->inst->store, &key, &known, &e) == 0 && known.n > 0)
        return learn_demand_mib(&known);
    int64_t p95 = spread_quantile(&c->sums.peaks, 950);
    return p95 > 0 ? (int32_t)request_vram_for_peak_mib(p95) : 0;
}

static int64_t
largest_card(const struct report *r)
{
    int64_t most = 0;
    for (int i = 0; i < r->n_cards; i++)
        most = r->cards[i].total_mib > most ? r->cards[i].total_mib : most;
    return most;
}

static void
look_at_declared(struct list *l, const struct report_command *c, int32_t ask)
{
    const struct report_sums *s = &c->sums;
    struct advice a = {.uid = c->key.uid, .command = c, .sums = s, .ask_mib = ask};
    if (s->verdicts[VERDICT_UNDER] > 0 && ask > s->asked_mib) {
        a.kind = ASK_MORE;
        a.jobs = s->verdicts[VERDICT_UNDER];
        a.weight = (double)(ask - s->asked_mib) * (double)s->gpu_ms;
        add(l, a);
    } else if (s->verdicts[VERDICT_OVER] > 0 && ask < s->asked_mib - s->asked_mib / 10) {
        a.kind = ASK_LESS;
        a.jobs = s->verdicts[VERDICT_OVER];
        a.weight = (double)s->wasted_mib_ms;
        add(l, a);
    }
}

/* The largest GPU now in the machine; 0: unknown. */
static int64_t
largest_here(const struct report *r)
{
    int64_t most = 0;
    for (int i = 0; i < r->n_cards; i++)
        if (!r->cards[i].gone && r->cards[i].total_mib > most)
            most = r->cards[i].total_mib;
    return most;
}

static void
look_at_oom(struct list *l, const struct report_command *c, int32_t ask)
{
    const struct report_sums *s = &c->sums;
    struct advice a = {.kind = OUT_OF_MEMORY,
                       .uid = c->key.uid,
                       .command = c,
                       .sums = s,
                       .jobs = s->oom_jobs,
                       .ask_mib = ask > s->oom_next_mib ? ask : s->oom_next_mib,
                       .weight = (double)s->oom_mib * (double)s->gpu_ms};
    int64_t most = largest_here(l->report);
    if (most > 0 && a.ask_mib > most) {
        a.ask_mib = 0;
        a.limit_mib = most;
    }
    add(l, a);
}

static void
look_at_command(struct list *l, const struct report_command *c)
{
    const struct report_sums *s = &c->sums;
    int32_t ask = demand_of(l->report, c);
    int64_t card = largest_card(l->report);
    if (s->oom_mib > 0 && s->oom_jobs * OOM_SHARE >= s->ran) {
        look_at_oom(l, c, ask);
        return;
    }
    if (ask > 0 && s->asked_mib > 0)
        look_at_declared(l, c, ask);
    else if (ask > 0 && s->verdicts[VERDICT_NONE] > 0 && ask * 100LL < card * SHARES_PERCENT)
        add(l, (struct advice){.kind = UNDECLARED,
                               .uid = c->key.uid,
                               .command = c,
                               .sums = s,
                               .jobs = s->verdicts[VERDICT_NONE],
                               .ask_mib = ask,
                               .weight = (double)(card - ask) * (double)s->gpu_ms});
}

static void
look_at_user(struct list *l, const struct report_user *u)
{
    const struct report_sums *s = &u->sums;
    if (s->gpu_ms < LOW_LOAD_GPU_MS || s->util_count == 0 ||
        s->util_sum >= s->util_count * LOW_LOAD_PERCENT)
        return;
    add(l, (struct advice){.kind = LOW_LOAD,
                           .uid = u->uid,
                           .sums = s,
                           .jobs = s->ran,
                           .weight = (double)largest_card(l->report) * (double)s->gpu_ms});
}

static void
add_oom_text(const struct advice *a, struct buf *out)
{
    char asked[24], peak[24], limit[24];
    buf_addf(out, "%lld job%s of this command ended out of memory with %s", (long long)a->jobs,
             a->jobs == 1 ? "" : "s", format_mib(a->sums->oom_mib, asked));
    if (a->sums->oom_peak_mib > 0)
        buf_addf(out, " and peaked at %s", format_mib(a->sums->oom_peak_mib, peak));
    if (a->limit_mib)
        buf_addf(out, ": a smaller batch, or more GPUs; the largest GPU here has %s",
                 format_mib(a->limit_mib, limit));
    else
        buf_adds(out, ": request ");
}

static void
add_text(const struct advice *a, struct buf *out)
{
    const char *s = a->jobs == 1 ? "" : "s";
    char peak[24], asked[24], ask[24], span[24];
    format_mib(a->sums->peaks.n ? a->sums->peaks.max : -1, peak);
    format_mib(a->sums->asked_mib, asked);
    switch (a->kind) {
    case ASK_LESS:
        buf_addf(out, "%lld job%s of this command peaked at %s and requested %s: request ",
                 (long long)a->jobs, s, peak, asked);
        break;
    case ASK_MORE:
        buf_addf(out,
                 "%lld job%s of this command used up to %s and requested %s, so other jobs on "
                 "%s GPUs may run out of memory: request ",
                 (long long)a->jobs, s, peak, asked, a->jobs == 1 ? "its" : "their");
        break;
    case OUT_OF_MEMORY:
        add_oom_text(a, out);
        break;
    case UNDECLARED:
        buf_addf(out,
                 "%lld job%s of this command used a whole GPU and peaked at %s; to share the "
                 "GPU, request ",
                 (long long)a->jobs, s, peak);
        break;
    case LOW_LOAD:
        buf_addf(out, "the jobs of %s kept their GPUs only %lld %% busy over %s of GPU time",
                 daemon_user_name(a->uid), (long long)(a->sums->util_sum / a->sums->util_count),
                 format_duration(a->sums->gpu_ms, span));
        return;
    }
    if (a->ask_mib)
        buf_adds(out, format_ask_mib(a->ask_mib, ask));
}

static void
write_one(const struct report *r, const struct advice *a, struct jsonw *w)
{
    static const char *const kinds[] = {"ask_less", "ask_more", "out_of_memory", "undeclared",
                                        "low_load"};
    auto_buf struct buf text = BUF_INIT, command = BUF_INIT;
    if (a->command)
        report_command_text(r, a->command, &command);
    add_text(a, &text);
    jsonw_object(w);
    jsonw_kstr(w, "kind", kinds[a->kind]);
    jsonw_kstr(w, "user", daemon_user_name(a->uid));
    jsonw_kint(w, "uid", a->uid);
    jsonw_key(w, "command");
    if (command.len)
        jsonw_raw(w, command.data, command.len);
    else
        jsonw_null(w);
    if (a->command)
        jsonw_kint(w, "newest", a->command->newest);
    jsonw_kint(w, "jobs", a->jobs);
    if (a->ask_mib)
        jsonw_kint(w, "ask_mib", a->ask_mib);
    jsonw_kstr(w, "text", buf_str(&text));
    jsonw_end_object(w);
}

static int
compare(const void *a, const void *b)
{
    const struct advice *x = a, *y = b;
    if (x->weight > y->weight || x->weight < y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->uid != y->uid ? (x->uid > y->uid) - (x->uid < y->uid)
                            : (int)x->kind - (int)y->kind;
}

void
report_write_advice(const struct report *r, const struct report_command *const *commands, int n,
                    struct jsonw *w)
{
    struct list l = {.report = r};
    for (int i = 0; i < n && i < COMMANDS_LOOKED; i++)
        if (!report_is_hidden(r, commands[i]->key.uid))
            look_at_command(&l, commands[i]);
    for (const struct report_user *u = r->users; u; u = u->hh.next)
        look_at_user(&l, u);
    if (l.n > 1)
        qsort(l.v, l.n, sizeof *l.v, compare);
    jsonw_karray(w, "advice");
    for (size_t i = 0; i < l.n && i < ADVICE_MAX; i++)
        write_one(r, &l.v[i], w);
    jsonw_end_array(w);
    free(l.v);
}
