/* A request's defaults, copying and freeing. Called by every entry point that builds a request
 * and by the job that owns one. */
#include "base/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/search.h"
#include "base/text.h"

/* demand is compared with memcmp, so it must have no padding. */
_Static_assert(sizeof(struct demand) == 104, "struct demand has no hidden padding");

const struct request request_standard = {
    .demand = {.gpus = 1, .margin_mib = -1},
    .oom_retries = -1,
    .grace_ms = -1,
    .max_requeues = REQUEUES_DEFAULT,
};

void
demand_init(struct demand *d)
{
    *d = request_standard.demand;
}

bool
demand_is_whole(const struct demand *d)
{
    return d->vram_mib == 0 && d->share_permille == 0;
}

void
request_init(struct request *r)
{
    *r = request_standard;
}

static void
free_list(char **list)
{
    for (char **item = list; item && *item; item++)
        free(*item);
    free(list);
}

void
request_free(struct request *r)
{
    if (!r)
        return;
#define X(field)                                                                               \
    free(r->field);                                                                            \
    r->field = NULL;
    REQUEST_TEXTS(X)
#undef X
#define X(field)                                                                               \
    free_list(r->field);                                                                       \
    r->field = NULL;
    REQUEST_LISTS(X)
#undef X
    for (int i = 0; i < r->n_deps; i++)
        free(r->deps[i].name);
    free(r->deps);
    r->deps = NULL;
    r->n_deps = 0;
    hooks_free(r->hooks);
    r->hooks = NULL;
    task_set_free(&r->array);
}

static size_t
text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

static size_t
list_bytes(char *const *list)
{
    size_t n = 0;
    for (char *const *item = list; item && *item; item++)
        n += strlen(*item) + sizeof *item;
    return n;
}

int64_t
request_text_bytes(const struct request *r)
{
    const struct hooks *h = r->hooks;
    size_t n = 0;
#define X(field) n += text_bytes(r->field);
    REQUEST_TEXTS(X)
#undef X
#define X(field) n += list_bytes(r->field);
    REQUEST_LISTS(X)
#undef X
    for (int i = 0; i < r->n_deps; i++)
        n += text_bytes(r->deps[i].name);
#define X(field) n += text_bytes(h ? h->field : NULL);
    HOOK_TEXTS(X)
#undef X
    return (int64_t)n;
}

static char *
text_copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* --- notifications --- */

void
hooks_free(struct hooks *h)
{
    if (!h)
        return;
#define X(field) free(h->field);
    HOOK_TEXTS(X)
#undef X
    free(h);
}

struct hooks *
hooks_copy(const struct hooks *h)
{
    struct hooks *copy;

    if (!h)
        return NULL;
    copy = xcalloc(1, sizeof *copy);
    *copy = *h;
#define X(field) copy->field = text_copy(h->field);
    HOOK_TEXTS(X)
#undef X
    return copy;
}

uint32_t
hooks_mail_types(const struct hooks *h)
{
    if (h->mail_types & MAIL_NONE)
        return 0;
    return h->mail_types || !h->mail_user ? h->mail_types : MAIL_END;
}

/* --- the request --- */

static char **
list_copy(char *const *list)
{
    if (!list)
        return NULL;
    size_t n = text_list_len(list);
    char **copy = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(list[i]);
    return copy;
}

void
request_copy(struct request *to, const struct request *from)
{
    *to = *from;
#define X(field) to->field = text_copy(from->field);
    REQUEST_TEXTS(X)
#undef X
#define X(field) to->field = list_copy(from->field);
    REQUEST_LISTS(X)
#undef X
    to->hooks = hooks_copy(from->hooks);
    task_set_copy(&to->array, &from->array);
    to->deps = NULL;
    if (from->n_deps)
        to->deps = xcalloc((size_t)from->n_deps, sizeof *to->deps);
    for (int i = 0; i < from->n_deps; i++) {
        to->deps[i] = from->deps[i];
        to->deps[i].name = text_copy(from->deps[i].name);
    }
}

/* The index of the range that holds the task, or at which to insert it: the first range that
 * ends at or after it. */
static int32_t
range_at(const struct task_set *t, int32_t task)
{
    return search_first(at, t->n, t->ranges[at].last < task);
}

bool
task_set_has(const struct task_set *t, int32_t task)
{
    int32_t at = range_at(t, task);
    return at < t->n && t->ranges[at].first <= task;
}

int32_t
task_set_next(const struct task_set *t, int32_t first, int32_t last)
{
    int32_t at = range_at(t, first), next;
    if (at == t->n)
        return -1;
    next = t->ranges[at].first > first ? t->ranges[at].first : first;
    return next <= last ? next : -1;
}

bool
task_set_remove(struct task_set *t, int32_t task)
{
    int32_t at = range_at(t, task);
    if (!task_set_has(t, task))
        return false;
    struct task_range *r = &t->ranges[at];
    size_t behind = (size_t)(t->n - at - 1) * sizeof *r;
    if (r->first == r->last) {
        memmove(r, r + 1, behind);
        t->n--;
    } else if (task == r->first) {
        r->first++;
    } else if (task == r->last) {
        r->last--;
    } else {
        struct task_range tail = {task + 1, r->last};
        t->ranges = xrealloc(t->ranges, (size_t)(t->n + 1) * sizeof *r);
        r = &t->ranges[at];
        memmove(r + 2, r + 1, behind);
        r->last = task - 1;
        r[1] = tail;
        t->n++;
    }
    return true;
}

bool
task_set_add(struct task_set *t, int32_t task)
{
    int32_t at = range_at(t, task);
    struct task_range *before, *behind;
    if (task_set_has(t, task))
        return false;
    before = at > 0 && t->ranges[at - 1].last == task - 1 ? &t->ranges[at - 1] : NULL;
    behind = at < t->n && t->ranges[at].first == task + 1 ? &t->ranges[at] : NULL;
    if (before && behind) {
        before->last = behind->last;
        memmove(behind, behind + 1, (size_t)(t->n - at - 1) * sizeof *behind);
        t->n--;
    } else if (before) {
        before->last = task;
    } else if (behind) {
        behind->first = task;
    } else {
        t->ranges = xrealloc(t->ranges, (size_t)(t->n + 1) * sizeof *t->ranges);
        memmove(&t->ranges[at + 1], &t->ranges[at], (size_t)(t->n - at) * sizeof *t->ranges);
        t->ranges[at] = (struct task_range){task, task};
        t->n++;
    }
    return true;
}

int64_t
task_set_count(const struct task_set *t)
{
    int64_t n = 0;
    for (int32_t i = 0; i < t->n; i++)
        n += (int64_t)t->ranges[i].last - t->ranges[i].first + 1;
    return n;
}

void
task_set_text(const struct task_set *t, struct buf *out)
{
    for (int32_t i = 0; i < t->n; i++) {
        const struct task_range *r = &t->ranges[i];
        if (i)
            buf_addc(out, ',');
        buf_addi(out, r->first);
        if (r->last > r->first) {
            buf_addc(out, '-');
            buf_addi(out, r->last);
        }
    }
}

void
task_set_copy(struct task_set *to, const struct task_set *from)
{
    *to = (struct task_set){NULL, from->n};
    if (!from->n)
        return;
    to->ranges = xmalloc((size_t)from->n * sizeof *to->ranges);
    memcpy(to->ranges, from->ranges, (size_t)from->n * sizeof *to->ranges);
}

void
task_set_free(struct task_set *t)
{
    free(t->ranges);
    *t = (struct task_set){NULL, 0};
}
