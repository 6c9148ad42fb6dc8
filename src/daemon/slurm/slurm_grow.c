/* The backlog of packed jobs, and the number of allocations for it.
 *
 * Any allocation may start any line of the backlog (shepherd/slurm/allocation_lines.c), so
 * this file only decides the number of allocations: one more if a line fits in none, or if the
 * demand exceeds what is free. As many may be pending as are running, but at least the first
 * few, so that a full cluster is not asked for all of them at once. Allocations end themselves
 * when they have nothing to do; those still pending in Slurm are cancelled when the waiting
 * attempts no longer need them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/slurm/slurm_priv.h"
#include "slurm/allocation_options.h"

#define BACKLOG_LINES  2000  /* more than all allocations start in one look */
#define WORTH_MS       60000 /* a shorter job counts as part of a GPU */
#define SLACK          0.01
#define PENDING_FIRST  4 /* Slurm may take seconds to consider a new job */
#define WAITING_MAX_US (5 * S_US)

/* --- lines --- */

static void
line_of(const struct slurm *s, const struct remote *r, const struct job *job,
        struct backlog_line *out)
{
    slurm_line_of_request(&job->req, job->run->vram_mib, out);
    if (out->demand.vram_mib > 0 && out->demand.margin_mib < 0)
        out->demand.margin_mib = (int32_t)s->inst->config.margin_mib;
    out->job = r->job;
    out->attempt = r->attempt;
    out->span_ms = job->estimate_ms;
}

static bool
waits(const struct remote *r)
{
    return slurm_is_packed(r) && !r->began && !r->ended && !r->stop_asked;
}

/* An attempt that waited when the list was made. */
struct wait {
    struct backlog_line line;
    int32_t priority;
};

static int
by_order(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->line.job < y->line.job ? -1 : x->line.job > y->line.job;
}

void
slurm_waiting_free(struct slurm *s)
{
    free(TAKE(s->waiting));
    s->n_waiting = 0;
}

/* Lists the waiting attempts in the order in which they should start. */
static void
list_waiting(struct slurm *s)
{
    slurm_waiting_free(s);
    s->waiting = xcalloc(HASH_COUNT(s->remotes) + 1, sizeof *s->waiting);
    for (struct remote *r = s->remotes; r; r = r->hh.next) {
        const struct job *job = waits(r) ? slurm_job_of(s, r) : NULL;
        if (!job)
            continue;
        struct wait *w = &s->waiting[s->n_waiting++];
        w->priority = job->req.priority;
        line_of(s, r, job, &w->line);
    }
    qsort(s->waiting, s->n_waiting, sizeof *s->waiting, by_order);
}

/* NULL: it no longer waits. */
static struct remote *
remote_of(const struct slurm *s, const struct wait *w)
{
    struct remote *r;
    HASH_FIND(hh, s->remotes, &w->line.job, sizeof w->line.job, r);
    return r && r->attempt == w->line.attempt && waits(r) ? r : NULL;
}

/* With thousands of waiting attempts, the list and what follows from it are too expensive for
 * every tick: new attempts count at once, begun or ended ones within a second, and unannounced
 * changes, such as estimates, within a few seconds. */
static bool
list_is_old(const struct slurm *s, int64_t now)
{
    return !s->waiting || s->waiting_is_old || now - s->waiting_us >= WAITING_MAX_US ||
           (s->some_left && now - s->waiting_us >= S_US);
}

static void
add_others(const struct slurm *s, struct buf *out)
{
    for (const struct remote *r = s->remotes; r; r = r->hh.next)
        if (slurm_is_packed(r) && r->began && r->stops > 0 && !r->ended) {
            struct backlog_line line = {
                .word = BACKLOG_STOP, .job = r->job, .attempt = r->attempt, .times = r->stops};
            backlog_add(&line, out);
        }
    for (const struct alloc *a = s->allocs; a; a = a->hh.next)
        if (slurm_alloc_is_dead(a) && !a->is_over) {
            struct backlog_line line = {.word = BACKLOG_LEAVE};
            memcpy(line.key, a->key, sizeof line.key);
            backlog_add(&line, out);
        }
}

static void
write_backlog(struct slurm *s)
{
    struct err e;
    auto_buf struct buf text = BUF_INIT;
    if (s->allocs_fd < 0)
        return;
    for (size_t i = 0; i < s->n_waiting && i < BACKLOG_LINES; i++)
        backlog_add(&s->waiting[i].line, &text);
    add_others(s, &text);
    if (s->backlog_is_written && text.len == s->backlog.len &&
        (text.len == 0 || memcmp(text.data, s->backlog.data, text.len) == 0))
        return;
    if (file_write_atomic_at(s->allocs_fd, "backlog", text.len ? text.data : "", text.len, 0600,
                             false, &e) < 0) {
        log_error("event=backlog-not-written %s", e.text);
        return;
    }
    s->backlog_is_written = true;
    buf_clear(&s->backlog);
    buf_add(&s->backlog, text.data ? text.data : "", text.len);
}

/* --- how many allocations --- */

/* Memory per GPU of allocations, as reported by them or as set; 0 or less: unknown. */
static int32_t
gpu_mib(const struct slurm *s)
{
    return s->gpu_mib >= 0 ? s->gpu_mib : (int32_t)s->inst->config.slurm_gpu_mib;
}

/* The number of GPUs the line takes; a fraction if it shares one. */
static double
gpus_of(const struct slurm *s, const struct backlog_line *line)
{
    const struct demand *d = &line->demand;
    const struct config *c = &s->inst->config;
    double each = 1;
    if (d->gpus == 0) {
        double cpus = c->slurm_allocation_cpus > 0 ? (double)c->slurm_allocation_cpus : 1;
        double gpus = c->slurm_allocation_gpus > 0 ? (double)c->slurm_allocation_gpus : 1;
        return (d->cpus > 0 ? d->cpus : 1) / cpus * gpus;
    }
    if (d->vram_mib > 0 && gpu_mib(s) > 0)
        each = (double)d->vram_mib / gpu_mib(s);
    else if (d->vram_mib == 0 && d->share_permille > 0 && gpu_mib(s) > 0)
        each = d->share_permille / 1000.0;
    return d->gpus * (each < 1 && !d->exclusive ? each : 1);
}

/* The demand that counts for new allocations: a short job does not need its place for long. */
static double
worth(const struct slurm *s, const struct wait *w)
{
    double gpus = gpus_of(s, &w->line);
    int64_t span_ms = w->line.span_ms;
    return span_ms > 0 && span_ms < WORTH_MS ? gpus * (double)span_ms / WORTH_MS : gpus;
}

static int64_t
left_ms(const struct alloc *a)
{
    return a->is_here ? (a->end_us - clock_boot_us()) / 1000 : a->spec.limit_ms;
}

/* Per GPU, including the margin. */
static int64_t
needed_mib(const struct demand *d)
{
    return d->vram_mib > 0 ? (int64_t)d->vram_mib + d->margin_mib : 0;
}

static bool
may_have(const struct alloc *a, const struct backlog_line *line)
{
    bool is_small = a->is_here && a->gpu_mib > 0 && needed_mib(&line->demand) > a->gpu_mib;
    return !slurm_alloc_is_dead(a) && !a->is_unwanted && !a->was_told && !is_small &&
           allocation_is_fit(&a->spec, line) && allocation_has_time(&a->spec, line, left_ms(a));
}

static bool
any_may_have(const struct slurm *s, const struct backlog_line *line)
{
    for (const struct alloc *a = s->allocs; a; a = a->hh.next)
        if (may_have(a, line))
            return true;
    return false;
}

static void
count_used(const struct slurm *s)
{
    for (struct alloc *a = s->allocs; a; a = a->hh.next)
        a->used = 0;
    for (const struct remote *r = s->remotes; r; r = r->hh.next) {
        const struct job *job = r->alloc && !r->has_left ? slurm_job_of(s, r) : NULL;
        struct backlog_line line;
        if (!job)
            continue;
        line_of(s, r, job, &line);
        r->alloc->used += gpus_of(s, &line);
    }
}

struct numbers {
    int live, pending; /* numbers of allocations */
    double free;       /* free GPUs in them */
};

static struct numbers
count_allocs(const struct slurm *s)
{
    struct numbers n = {0};
    for (const struct alloc *a = s->allocs; a; a = a->hh.next) {
        if (slurm_alloc_is_dead(a) || a->is_unwanted)
            continue;
        n.live++;
        n.pending += !a->is_here;
        double left = (a->spec.gpus > 0 ? a->spec.gpus : 1) - a->used;
        if (left > 0 && !a->was_told && left_ms(a) >= ALLOCATION_LATE(a->spec.limit_ms))
            n.free += left;
    }
    return n;
}

/* The line for which the next allocation is sized: one that fits in none; or, if the total
 * demand exceeds the room, preferably one that fits a standard allocation: an allocation that
 * no line can use would be given back and requested again. */
static const struct wait *
choose(const struct slurm *s, const struct numbers *have)
{
    struct allocation_spec standard;
    const struct wait *usual = NULL;
    double wanted = 0;
    allocation_spec_for(&s->inst->config, NULL, &standard);
    for (size_t i = 0; i < s->n_waiting; i++) {
        const struct wait *w = &s->waiting[i];
        if (!any_may_have(s, &w->line))
            return w;
        if (!usual && allocation_is_fit(&standard, &w->line))
            usual = w;
        wanted += worth(s, w);
    }
    bool is_known = gpu_mib(s) > 0 || s->gpu_mib >= 0 || have->live == 0;
    if (!is_known || wanted <= have->free + SLACK)
        return NULL;
    return usual ? usual : &s->waiting[0];
}

/* --- fewer allocations --- */

static bool
is_pending(const struct alloc *a)
{
    return !a->is_here && !a->is_unwanted && !slurm_alloc_is_dead(a);
}

/* True if a waiting line can use the allocation; without_it: and no other allocation that
 * stays. */
static bool
is_of_use(const struct slurm *s, const struct alloc *a, bool without_it)
{
    for (size_t i = 0; i < s->n_waiting; i++) {
        const struct backlog_line *line = &s->waiting[i].line;
        const struct alloc *b = without_it ? s->allocs : NULL;

        while (b && !((b->is_here || b->is_kept) && may_have(b, line)))
            b = b->hh.next;
        if (!b && may_have(a, line))
            return true;
    }
    return false;
}

/* Marks the pending allocations to keep: the oldest, because Slurm starts them first, enough
 * for the demand, plus each that is the only one for some line. Running ones do not count,
 * because the waiting lines find no room in them. */
static void
mark_kept(struct slurm *s)
{
    double wanted = 0, kept = 0;
    for (size_t i = 0; i < s->n_waiting; i++)
        wanted += worth(s, &s->waiting[i]);
    for (struct alloc *a = s->allocs; a; a = a->hh.next)
        a->is_kept = false;
    for (struct alloc *a = s->allocs; a; a = a->hh.next) {
        bool is_missing = kept == 0 || kept + SLACK < wanted;
        a->is_kept = is_pending(a) && is_of_use(s, a, !is_missing);
        if (a->is_kept)
            kept += a->spec.gpus > 0 ? a->spec.gpus : 1;
    }
}

/* Marks only allocations that Slurm has not started; the others end themselves. If the daemon
 * is killed before Slurm is asked, the next one decides anew. */
static void
give_back(struct slurm *s)
{
    int64_t now = clock_boot_us();
    mark_kept(s);
    for (struct alloc *a = s->allocs; a; a = a->hh.next) {
        a->is_unwanted &= !a->is_here; /* it started before it could be cancelled */
        if (!is_pending(a) || a->is_kept) {
            a->spare_us = 0;
            continue;
        }
        a->spare_us = a->spare_us ? a->spare_us : now;
        if (now - a->spare_us < s->inst->config.slurm_allocation_idle_s * S_US)
            continue;
        log_info("event=allocation-unwanted key=%s slurm_job=%s waiting=%zu", a->key, a->id,
                 s->n_waiting);
        a->was_refused |= !a->is_sent;
        a->is_unwanted = true;
    }
}

/* --- more allocations --- */

/* The largest memory of the GPUs that the job may use, as reported by allocations; 0:
 * unknown. */
static int64_t
largest_mib(const struct slurm *s, const struct demand *d)
{
    int64_t largest = d->gpu_type[0] ? 0 : s->gpu_mib;
    for (const struct alloc *a = s->allocs; a; a = a->hh.next) {
        if (a->is_here && strcmp(a->spec.type, d->gpu_type) == 0 && a->gpu_mib > largest)
            largest = a->gpu_mib;
    }
    return largest > 0 ? largest : 0;
}

/* Refuses attempts that need more memory than these GPUs have. */
static void
refuse_too_large(struct slurm *s)
{
    char words[200];
    for (size_t i = 0; i < s->n_waiting; i++) {
        const struct demand *d = &s->waiting[i].line.demand;
        int64_t has = largest_mib(s, d);
        struct remote *r =
            has == 0 || needed_mib(d) <= has ? NULL : remote_of(s, &s->waiting[i]);
        if (!r)
            continue;
        snprintf(words, sizeof words,
                 "it needs %d + %d MiB margin of VRAM, and the GPUs%s%s of allocations have "
                 "%lld: use %s, or omit pack",
                 d->vram_mib, d->margin_mib, d->gpu_type[0] ? " " : "", d->gpu_type,
                 (long long)has, d->gpu_type[0] ? "another gpu-type" : "gpu-type");
        slurm_refuse(s, r, words);
    }
}

static void
grow(struct slurm *s)
{
    struct allocation_spec spec;
    refuse_too_large(s);
    give_back(s);
    if (s->n_waiting == 0)
        return;
    count_used(s);
    struct numbers have = count_allocs(s);
    int running = have.live - have.pending;
    if (clock_boot_us() < s->grow_us || have.live >= s->inst->config.slurm_allocations ||
        have.pending >= (running > PENDING_FIRST ? running : PENDING_FIRST))
        return;
    const struct wait *first = choose(s, &have);
    if (!first || !remote_of(s, first))
        return;
    allocation_spec_for(&s->inst->config, &first->line, &spec);
    (void)slurm_alloc_make(s, &spec);
}

void
slurm_grow(struct slurm *s)
{
    int64_t now = clock_boot_us();
    bool is_old = list_is_old(s, now);
    if (is_old) {
        s->waiting_is_old = s->some_left = false;
        s->waiting_us = now;
        list_waiting(s);
    }
    if (is_old || s->n_waiting == 0 || now - s->grown_us >= S_US) {
        s->grown_us = now;
        grow(s);
    }
    if (is_old)
        write_backlog(s);
}

void
slurm_refuse_like(struct slurm *s, const struct allocation_spec *spec, const char *text)
{
    struct allocation_spec standard;
    allocation_spec_for(&s->inst->config, NULL, &standard);
    bool is_special = spec->gpus > standard.gpus || spec->cpus > standard.cpus ||
                      spec->mem_mib > standard.mem_mib || spec->limit_ms > standard.limit_ms ||
                      spec->type[0];
    list_waiting(s);
    for (size_t i = 0; i < s->n_waiting; i++) {
        const struct backlog_line *line = &s->waiting[i].line;
        struct remote *r = remote_of(s, &s->waiting[i]);
        if (r && allocation_is_fit(spec, line) && !any_may_have(s, line) &&
            !(is_special && allocation_is_fit(&standard, line)))
            slurm_refuse(s, r, text);
    }
}

/* --- status text --- */

static void
add_alloc_words(const struct alloc *a, int n_pending, struct buf *out)
{
    const char *words = slurm_reason_words(a->reason);
    if (!a->id[0] || !a->is_known)
        buf_adds(out, "an allocation is being asked for");
    else if (a->phase == SLURM_WAITS)
        buf_addf(out, "%s%s%s (an allocation, Slurm's job %s)", a->reason, words ? ": " : "",
                 words ? words : "", a->id);
    else
        buf_addf(out, "its allocation, Slurm's job %s, is %s%s%s", a->id, a->state,
                 a->node[0] ? " on " : "", a->node);
    if (n_pending > 1)
        buf_addf(out, "; %d more are pending", n_pending - 1);
}

static void
add_waiting_words(const struct slurm *s, struct buf *out)
{
    const struct alloc *pending = NULL, *a;
    int n_here = 0, n_pending = 0;
    for (a = s->allocs; a; a = a->hh.next) {
        if (slurm_alloc_is_dead(a))
            continue;
        n_here += a->is_here;
        n_pending += !a->is_here;
        if (!a->is_here && (!pending || !pending->is_known))
            pending = a;
    }
    if (n_here > 0)
        buf_addf(out, "it waits for room in %d allocation%s%s", n_here, n_here > 1 ? "s" : "",
                 pending ? "; " : "");
    if (pending)
        add_alloc_words(pending, n_pending, out);
    else if (n_here == 0)
        buf_adds(out, "an allocation is about to be asked for");
}

void
slurm_add_packed_words(const struct slurm *s, const struct remote *r, struct buf *out)
{
    if (!r->began)
        add_waiting_words(s, out);
    else if (r->alloc)
        buf_addf(out, "in the allocation that is Slurm's job %s on %s", r->alloc->id,
                 r->alloc->node);
    else
        buf_adds(out, "in an allocation that Slurm does not know any more");
    if (!r->began && s->pack_trouble.code)
        buf_addf(out, "; %s", s->pack_trouble.text);
    if (s->trouble.code)
        buf_addf(out, "; Slurm does not answer now: %s", s->trouble.text);
}
