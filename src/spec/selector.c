/* The selector grammar. Called by the command line, to refuse nonsense before it asks, and
 * by the daemon, which matches jobs. State names are core's; they are repeated here because
 * spec stands beside core, and a test holds the two together. */
#include "spec/selector.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#define SHOWN_COLUMNS 60

static const char *const state_names[] = {
    "PENDING",       "HELD",      "STARTING",   "RUNNING",   "SUSPENDED",
    "COMPLETING",    "COMPLETED", "FAILED",     "CANCELLED", "TIMEOUT",
    "OUT_OF_MEMORY", "PREEMPTED", "INFEASIBLE", "LOST",      NULL,
};

static const char *const prefixes[] = {"name", "user", "state", NULL};

#define GRAMMAR                                                                                \
    "write a job's number, 12,14 or 12-20, @ (your last), name:GLOB, user:NAME, state:NAME "   \
    "or "                                                                                      \
    "all"

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
    s->terms = xrealloc(s->terms, (s->n_terms + 1) * sizeof(*s->terms));
    s->terms[s->n_terms++] =
        (struct selector_term){.kind = kind, .pattern = pattern ? xstrndup(pattern, n) : NULL};
}

/* Digits to a job's number, 1..UINT32_MAX. */
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

/* "12" or "12-20" or "@" or "all", n bytes of text. */
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
        return refuse(piece, "names a task of an array, and there are no arrays; " GRAMMAR, e);
    if (*p == '-' && (p++, !scan_id(&p, &last)))
        return refuse(piece, "is no range of jobs; write 12-20", e);
    if (*p)
        return refuse(piece, "selects no job; " GRAMMAR, e);
    if (last < first)
        return refuse(piece, "runs backwards; write the smaller number first", e);
    push(s, SELECT_IDS, NULL, 0);
    s->terms[s->n_terms - 1].first = first;
    s->terms[s->n_terms - 1].last = last;
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
        buf_addf(&why, "%s%s", i ? ", " : "; there are ", state_names[i]);
    return refuse(name, buf_str(&why), e);
}

static int
add_user(struct selector *s, const char *text, size_t n, struct err *e)
{
    (void)e;
    push(s, SELECT_USER, text, n);
    return 0;
}

/* Hands the pieces between commas to add; an empty one is an error. */
static int
add_each(struct selector *s, const char *text, const char *whole,
         int (*add)(struct selector *, const char *, size_t, struct err *), struct err *e)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        if (n == 0)
            return refuse(whole, "lacks something; " GRAMMAR, e);
        if (add(s, text, n, e) != 0)
            return -1;
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

/* "word:rest" with a word that is none of ours. */
static int
refuse_prefix(const char *text, size_t n, struct err *e)
{
    auto_free char *word = xstrndup(text, n);
    auto_buf struct buf why = BUF_INIT;
    const char *nearest = text_nearest(word, prefixes);

    if (strcasecmp(word, "tag") == 0)
        return refuse(text, "asks for a tag, and jobs have none; " GRAMMAR, e);
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
        push(s, SELECT_NAME, colon + 1, strlen(colon + 1));
        return 0;
    }
    if (n == 4 && strncasecmp(text, "user", n) == 0)
        return add_each(s, colon + 1, text, add_user, e);
    if (n == 5 && strncasecmp(text, "state", n) == 0)
        return add_each(s, colon + 1, text, add_state, e);
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

void
selector_free(struct selector *s)
{
    for (size_t i = 0; i < s->n_terms; i++)
        free(s->terms[i].pattern);
    free(s->terms);
    *s = (struct selector)SELECTOR_INIT;
}

bool
selector_matches(const struct selector *s, uint32_t id, const char *name, const char *user,
                 const char *state_name, bool is_last)
{
    for (size_t i = 0; i < s->n_terms; i++) {
        const struct selector_term *t = &s->terms[i];
        bool match = false;
        switch (t->kind) {
        case SELECT_ALL:
            match = true;
            break;
        case SELECT_LAST:
            match = is_last;
            break;
        case SELECT_IDS:
            match = id >= t->first && id <= t->last;
            break;
        case SELECT_NAME:
            match = name && text_glob(t->pattern, name);
            break;
        case SELECT_USER:
            match = user && strcmp(t->pattern, user) == 0;
            break;
        case SELECT_STATE:
            match = state_name && strcmp(t->pattern, state_name) == 0;
            break;
        }
        if (match)
            return true;
    }
    return false;
}
