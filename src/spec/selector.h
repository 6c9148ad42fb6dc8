/* Selects jobs: 12, 12,14, 12-20, 12_3 and 12_[3-5] (tasks of an array), @ (the caller's
 * last), name:sweep*, user:alice, state:failed, tag:x, --all. One grammar for every verb.
 * Pure: parsing and matching only. */
#ifndef SPEC_SELECTOR_H
#define SPEC_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum selector_kind {
    SELECT_ALL,
    SELECT_LAST,  /* @ */
    SELECT_IDS,   /* first..last */
    SELECT_TASKS, /* tasks first_task..last_task of the array `first` */
    SELECT_NAME,  /* pattern, a glob */
    SELECT_USER,  /* pattern, exact */
    SELECT_STATE, /* pattern, a state's name in upper case */
    SELECT_TAG,   /* pattern, a glob */
};

struct selector_term {
    enum selector_kind kind;
    bool each; /* for SELECT_IDS: every number was given explicitly, not as part of a range, so
                  each is looked up */
    uint32_t first, last;
    int32_t first_task, last_task;
    char *pattern; /* owned; NULL for kinds without a pattern */
};

/* Limits of one request, before and after duplicates are merged. */
#define SELECTOR_SAID_MAX          100000
#define SELECTOR_TERMS_MAX         1000
#define SELECTOR_EACH_MAX          5000 /* jobs named one by one */
#define SELECTOR_PATTERNS_MAX      64   /* terms with name: or tag: */
#define SELECTOR_PATTERN_MAX_BYTES 256  /* after name:, user: or tag: */

/* Matches a job that any term matches; without terms, nothing. */
struct selector {
    struct selector_term *terms; /* owned */
    size_t n_terms, cap;
    size_t n_sorted; /* the first n_sorted terms are sorted numbers: see selector_tidy */
};

#define SELECTOR_INIT                                                                          \
    {                                                                                          \
        NULL, 0, 0, 0                                                                          \
    }
#define auto_selector __attribute__((cleanup(selector_free)))

/* Adds the terms in text to *s (initialised by the caller), so several calls form a union.
 * ERR_USAGE, with *s unchanged. */
int selector_add(struct selector *s, const char *text, struct err *e);

/* Merges duplicates and adjacent numbers and sorts the numbers, so that matching looks up few
 * of them. If more than SELECTOR_EACH_MAX are named, adjacent ones are treated as ranges.
 * ERR_USAGE if more than SELECTOR_TERMS_MAX terms are left. Add nothing afterwards. */
int selector_tidy(struct selector *s, struct err *e);

/* True if this very job was named, by its number or as a task, and not only by a wider
 * term. */
bool selector_names(const struct selector *s, uint32_t id, uint32_t array);

void selector_free(struct selector *s); /* frees the contents, not s */

/* The properties of a job that terms match. Borrowed. */
struct selector_job {
    uint32_t id;
    uint32_t array; /* the array of which it is a task; 0: none */
    int32_t task;
    const char *name; /* may be NULL */
    const char *user;
    const char *state;       /* "FAILED" */
    const char *const *tags; /* NULL-terminated; may be NULL */
    bool is_last;            /* the caller's latest job */
};
bool selector_matches(const struct selector *s, const struct selector_job *job);

#endif
