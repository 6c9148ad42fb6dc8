/* The selector grammar. Called by the command line, to refuse invalid text before it sends a
 * request, and by the daemon, which matches jobs. State names are duplicated from core,
 * because spec may not depend on core; a test compares the two. */
#include "spec/selector.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/search.h"
#include "base/text.h"

#define SHOWN_COLUMNS 60

/* Omits SUSPENDED, which no job reaches, so it would select nothing. */
static const char *const state_names[] = {
    "PENDING",   "HELD",    "STARTING",      "RUNNING",   "COMPLETING", "COMPLETED", "FAILED",
    "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "PREEMPTED", "INFEASIBLE", "LOST",      NULL,
};

static const char *const prefixes[] = {"name", "user", "state", "tag", NULL};

#define GRAMMAR                                                                                \
    "write a job's number, 12,14 or 12-20, 12_3 (a task), @ (your last), name:GLOB, "          \
    "user:NAME, state:NAME, tag:GLOB or all"

static int
refuse(const char *text, const char *why, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    text_add_safe(&shown, text, strlen(text), SHOWN_COLUMNS);
    return err_set(e, ERR_USAGE, "'%s' %s", buf_str(&shown), why);
}

/* pattern: n bytes, copied; NULL: none. */
static void
push(struct selector *s, enum selector_kind kind, const char *pattern, size_t n)
{
    s->terms = xgrow(s->terms, s->n_terms, &s->cap, sizeof *s->terms);
    s->terms[s->n_terms++] =
        (struct selector_term){.kind = kind, .pattern = pattern ? xstrndup(pattern, n) : NULL};
}

/* Scans digits as a job's number, 1..UINT32_MAX. */
static bool
scan_id(const char **p, uint32_t *out)
{
    const char *s = *p;
    uint64_t v = 0;

    for (; *s >= '0' && *s <= '9' && v <= UINT32_MAX; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    if (s == *p || v == 0 || v > UINT32_MAX)
        return false;
    *p = s;
    *out = (uint32_t)v;
    return true;
}

/* "3" or "3-5": numbers of tasks. */
static bool
scan_tasks(const char **p, int32_t *first, int32_t *last)
{
    int32_t *to[2] = {first, last};

    for (int i = 0; i < 2; i++) {
        int64_t v = 0;
        const char *s = *p;
        for (; *s >= '0' && *s <= '9' && v < ARRAY_MAX; s++)
            v = v * 10 + (*s - '0');
        if (s == *p || v >= ARRAY_MAX)
            return false;
        *to[i] = (int32_t)v;
        *p = s;
        if (i == 0 && *s != '-') {
            *last = *first;
            return true;
        }
        *p = s + (i == 0);
    }
    return *first <= *last;
}

/* Terms are sorted, so an 8 MiB request must not hold a million of them. */
static int
check_said(const struct selector *s, struct err *e)
{
    if (s->n_terms <= SELECTOR_SAID_MAX)
        return 0;
    return err_set(e, ERR_USAGE,
                   "more than %d words select jobs; use ranges (12-20), or several requests",
                   SELECTOR_SAID_MAX);
}

/* Parses the text after "12_": "3", or "[3-5,9]". */
static int
add_tasks(struct selector *s, const char *piece, const char *p, uint32_t array, struct err *e)
{
    bool many = *p == '[';

    p += many;
    for (;;) {
        int32_t first, last;
        if (!scan_tasks(&p, &first, &last) || (first < last && !many))
            return refuse(piece, "is not a task of an array; write 12_3 or 12_[3-5,9]", e);
        push(s, SELECT_TASKS, NULL, 0);
        s->terms[s->n_terms - 1].first = s->terms[s->n_terms - 1].last = array;
        s->terms[s->n_terms - 1].first_task = first;
        s->terms[s->n_terms - 1].last_task = last;
        if (check_said(s, e) < 0)
            return -1;
        if (!many || *p != ',')
            break;
        p++;
    }
    if (strcmp(p, many ? "]" : "") == 0)
        return 0;
    return refuse(piece, "is not a task of an array; write 12_3 or 12_[3-5,9]", e);
}

/* "12" or "12-20" or "12_3" or "@" or "all", n bytes of text. */
static int
add_piece(struct selector *s, const char *text, size_t n, struct err *e)
{
    auto_free char *piece = xstrndup(text, n);
    const char *p = piece;
    uint32_t first, last;

    if (strcmp(piece, "@") == 0) {
        push(s, SELECT_LAST, NULL, 0);
        return 0;
    }
    if (strcasecmp(piece, "all") == 0 || strcmp(piece, "--all") == 0) {
        push(s, SELECT_ALL, NULL, 0);
        return 0;
    }
    if (!scan_id(&p, &first))
        return refuse(piece, "selects no job; " GRAMMAR, e);
    last = first;
    if (*p == '_')
        return add_tasks(s, piece, p + 1, first, e);
    if (*p == '-' && (p++, !scan_id(&p, &last)))
        return refuse(piece, "is not a range of jobs; write 12-20", e);
    if (*p)
        return refuse(piece, "selects no job; " GRAMMAR, e);
    if (last < first)
        return refuse(piece, "runs backwards; write the smaller number first", e);
    push(s, SELECT_IDS, NULL, 0);
    s->terms[s->n_terms - 1].first = first;
    s->terms[s->n_terms - 1].last = last;
    s->terms[s->n_terms - 1].each = first == last;
    return 0;
}

static int
add_state(struct selector *s, const char *text, size_t n, struct err *e)
{
    auto_free char *name = xstrndup(text, n);
    auto_buf struct buf why = BUF_INIT;
    const char *nearest;

    for (size_t i = 0; state_names[i]; i++) {
        if (strcasecmp(name, state_names[i]) == 0) {
            push(s, SELECT_STATE, state_names[i], strlen(state_names[i]));
            return 0;
        }
    }
    nearest = text_nearest(name, state_names);
    buf_adds(&why, "is not a state");
    if (nearest)
        buf_addf(&why, "; did you mean %s?", nearest);
    for (size_t i = 0; !nearest && state_names[i]; i++)
        buf_addf(&why, "%s%s", i ? ", " : "; the states are ", state_names[i]);
    return refuse(name, buf_str(&why), e);
}

static int
add_pattern(struct selector *s, enum selector_kind kind, const char *text, size_t n,
            struct err *e)
{
    if (n > SELECTOR_PATTERN_MAX_BYTES)
        return refuse(text, "is longer than a name or tag can be", e);
    push(s, kind, text, n);
    return 0;
}

static int
add_user(struct selector *s, const char *text, size_t n, struct err *e)
{
    return add_pattern(s, SELECT_USER, text, n, e);
}

static int
add_tag(struct selector *s, const char *text, size_t n, struct err *e)
{
    return add_pattern(s, SELECT_TAG, text, n, e);
}

/* Number of bytes up to the next comma outside brackets. */
static size_t
piece_length(const char *text)
{
    size_t n = 0;

    for (bool inside = false; text[n] && (inside || text[n] != ','); n++)
        inside = text[n] == '[' || (inside && text[n] != ']');
    return n;
}

/* Passes each piece between commas to add; an empty one is an error. */
static int
add_each(struct selector *s, const char *text, const char *whole,
         int (*add)(struct selector *, const char *, size_t, struct err *), struct err *e)
{
    for (;;) {
        size_t n = piece_length(text);
        if (n == 0)
            return refuse(whole, "is incomplete; " GRAMMAR, e);
        if (add(s, text, n, e) < 0 || check_said(s, e) < 0)
            return -1;
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

/* Refuses "word:rest" with an unknown word. */
static int
refuse_prefix(const char *text, size_t n, struct err *e)
{
    auto_free char *word = xstrndup(text, n);
    auto_buf struct buf why = BUF_INIT;
    const char *nearest = text_nearest(word, prefixes);

    if (!nearest)
        return refuse(text, "selects no job; " GRAMMAR, e);
    buf_addf(&why, "selects no job; did you mean %s:%s?", nearest, text + n + 1);
    return refuse(text, buf_str(&why), e);
}

static int
add_text(struct selector *s, const char *text, struct err *e)
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;

    if (!colon)
        return add_each(s, text, text, add_piece, e);
    if (n == 4 && strncasecmp(text, "name", n) == 0) {
        if (!colon[1])
            return refuse(text, "lacks the name; write name:sweep*", e);
        return add_pattern(s, SELECT_NAME, colon + 1, strlen(colon + 1), e);
    }
    if (n == 4 && strncasecmp(text, "user", n) == 0)
        return add_each(s, colon + 1, text, add_user, e);
    if (n == 5 && strncasecmp(text, "state", n) == 0)
        return add_each(s, colon + 1, text, add_state, e);
    if (n == 3 && strncasecmp(text, "tag", n) == 0)
        return add_each(s, colon + 1, text, add_tag, e);
    return refuse_prefix(text, n, e);
}

int
selector_add(struct selector *s, const char *text, struct err *e)
{
    size_t before = s->n_terms;

    if (add_text(s, text, e) == 0)
        return 0;
    while (s->n_terms > before)
        free(s->terms[--s->n_terms].pattern);
    return -1;
}

/* Sort order: numbers, then tasks, then the rest. */
static int
rank_of(const struct selector_term *t)
{
    return t->kind == SELECT_IDS ? 0 : t->kind == SELECT_TASKS ? 1 : 2;
}

static int
compare_terms(const void *a, const void *b)
{
    const struct selector_term *x = a, *y = b;
    int rank = rank_of(x);

    if (rank != rank_of(y))
        return rank - rank_of(y);
    if (rank == 2 && x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (rank == 2)
        return x->pattern && y->pattern ? strcmp(x->pattern, y->pattern) : 0;
    if (x->each != y->each)
        return x->each ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->first_task > y->first_task) - (x->first_task < y->first_task);
}

/* Merges y into x, which precedes it in the order of compare_terms. False: they cannot be
 * merged. */
static bool
joined(struct selector_term *x, const struct selector_term *y)
{
    if (rank_of(x) != rank_of(y) || x->each != y->each)
        return false;
    if (rank_of(x) == 2)
        return compare_terms(x, y) == 0;
    if (x->kind == SELECT_TASKS) {
        if (x->first != y->first || y->first_task > x->last_task + 1)
            return false;
        if (y->last_task > x->last_task)
            x->last_task = y->last_task;
        return true;
    }
    if (y->first > x->last && y->first - x->last > 1)
        return false;
    if (y->last > x->last)
        x->last = y->last;
    return true;
}

static int
check_count(const struct selector *s, struct err *e)
{
    size_t patterns = 0;

    for (size_t i = s->n_sorted; i < s->n_terms; i++)
        patterns += s->terms[i].kind == SELECT_NAME || s->terms[i].kind == SELECT_TAG;
    if (s->n_terms > SELECTOR_TERMS_MAX)
        return err_set(e, ERR_USAGE,
                       "%zu different words select jobs, and the maximum in one request is %d; "
                       "use ranges (12-20), a name:GLOB or a tag:GLOB, or several requests",
                       s->n_terms, SELECTOR_TERMS_MAX);
    if (patterns > SELECTOR_PATTERNS_MAX)
        return err_set(e, ERR_USAGE,
                       "%zu names and tags select jobs, and the maximum in one request is %d; "
                       "a GLOB such as name:sweep* covers many",
                       patterns, SELECTOR_PATTERNS_MAX);
    return 0;
}

static void
put_together(struct selector *s)
{
    size_t n = 0;

    if (s->n_terms > 1)
        qsort(s->terms, s->n_terms, sizeof *s->terms, compare_terms);
    s->n_sorted = 0;
    for (size_t i = 0; i < s->n_terms; i++) {
        if (n > 0 && joined(&s->terms[n - 1], &s->terms[i])) {
            free(s->terms[i].pattern);
            continue;
        }
        s->terms[n++] = s->terms[i];
        s->n_sorted += rank_of(&s->terms[n - 1]) < 2;
    }
    s->n_terms = n;
}

static bool
is_each(const struct selector_term *t)
{
    return t->kind == SELECT_IDS && t->each;
}

/* If so many numbers are given that looking up each would delay other clients, looks up only
 * those in short runs and treats the others as ranges. True: some terms changed. */
static bool
spread_numbers(struct selector *s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < s->n_sorted; i++)
        n += is_each(&s->terms[i]) ? (uint64_t)(s->terms[i].last - s->terms[i].first) + 1 : 0;
    if (n <= SELECTOR_EACH_MAX)
        return false;
    for (size_t i = 0; i < s->n_sorted; i++)
        if (is_each(&s->terms[i]) &&
            s->terms[i].last - s->terms[i].first >= SELECTOR_EACH_MAX / SELECTOR_TERMS_MAX)
            s->terms[i].each = false;
    return true;
}

int
selector_tidy(struct selector *s, struct err *e)
{
    put_together(s);
    if (spread_numbers(s))
        put_together(s);
    return check_count(s, e);
}

void
selector_free(struct selector *s)
{
    for (size_t i = 0; i < s->n_terms; i++)
        free(s->terms[i].pattern);
    free(s->terms);
    *s = (struct selector)SELECTOR_INIT;
}

static bool
has_tag(const char *const *tags, const char *glob)
{
    for (; tags && *tags; tags++)
        if (text_glob(glob, *tags))
            return true;
    return false;
}

static bool
term_matches(const struct selector_term *t, const struct selector_job *job)
{
    switch (t->kind) {
    case SELECT_ALL:
        return true;
    case SELECT_LAST:
        return job->is_last;
    case SELECT_IDS:
        return job->id >= t->first && job->id <= t->last;
    case SELECT_TASKS:
        return job->array == t->first && job->task >= t->first_task &&
               job->task <= t->last_task;
    case SELECT_NAME:
        return job->name && text_glob(t->pattern, job->name);
    case SELECT_USER:
        return job->user && strcmp(t->pattern, job->user) == 0;
    case SELECT_STATE:
        return job->state && strcmp(t->pattern, job->state) == 0;
    case SELECT_TAG:
        return has_tag(job->tags, t->pattern);
    }
    return false;
}

/* The last of the sorted terms that does not begin after key; NULL: none. */
static const struct selector_term *
find_sorted(const struct selector *s, const struct selector_term *key)
{
    size_t behind = search_first(at, s->n_sorted, compare_terms(&s->terms[at], key) <= 0);

    return behind ? &s->terms[behind - 1] : NULL;
}

static bool
has_id(const struct selector *s, uint32_t id, bool each)
{
    const struct selector_term key = {.kind = SELECT_IDS, .each = each, .first = id};
    const struct selector_term *t = find_sorted(s, &key);

    return t && t->kind == SELECT_IDS && t->each == each && id >= t->first && id <= t->last;
}

static bool
has_task(const struct selector *s, uint32_t array, int32_t task)
{
    const struct selector_term key = {.kind = SELECT_TASKS, .first = array, .first_task = task};
    const struct selector_term *t = array ? find_sorted(s, &key) : NULL;

    return t && t->kind == SELECT_TASKS && t->first == array && task >= t->first_task &&
           task <= t->last_task;
}

bool
selector_names(const struct selector *s, uint32_t id, uint32_t array)
{
    const struct selector_term key = {
        .kind = SELECT_TASKS, .first = array, .first_task = INT32_MAX};
    const struct selector_term *t = array ? find_sorted(s, &key) : NULL;

    return has_id(s, id, true) || (t && t->kind == SELECT_TASKS && t->first == array);
}

bool
selector_matches(const struct selector *s, const struct selector_job *job)
{
    if (has_id(s, job->id, true) || has_id(s, job->id, false) ||
        has_task(s, job->array, job->task))
        return true;
    for (size_t i = s->n_sorted; i < s->n_terms; i++)
        if (term_matches(&s->terms[i], job))
            return true;
    return false;
}
