/* Which jobs a person means: 12, 12,14, 12-20, 12_3 and 12_[3-5] (tasks of an array), @ (my
 * last), name:sweep*, user:alice, state:failed, tag:x, --all. One grammar for every verb. Pure:
 * parsing and matching only. */
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
    bool each; /* of SELECT_IDS: every number was said, and none is only between two of them, so
                  that each is looked up */
    uint32_t first, last;
    int32_t first_task, last_task;
    char *pattern; /* owned; NULL for the kinds without */
};

/* How much one request may say, and how much after what is said twice has been put together. */
#define SELECTOR_SAID_MAX          100000
#define SELECTOR_TERMS_MAX         1000
#define SELECTOR_EACH_MAX          5000 /* jobs that are named one by one */
#define SELECTOR_PATTERNS_MAX      64   /* of them with name: or tag: */
#define SELECTOR_PATTERN_MAX_BYTES 256  /* of what stands behind name:, user: or tag: */

/* Matches what any term matches; without terms, nothing. */
struct selector {
    struct selector_term *terms; /* owned */
    size_t n_terms, cap;
    size_t n_sorted; /* this many at the start are numbers in order: see selector_tidy */
};

#define SELECTOR_INIT                                                                          \
    {                                                                                          \
        NULL, 0, 0, 0                                                                          \
    }
#define auto_selector __attribute__((cleanup(selector_free)))

/* Adds what text says to *s (initialised by the caller), so several texts are a union.
 * ERR_USAGE, with *s as it was. */
int selector_add(struct selector *s, const char *text, struct err *e);

/* Puts together what was said several times, or in numbers that follow each other, and brings
 * numbers into order, so that matching looks few of them up. Of more than SELECTOR_EACH_MAX
 * those that follow each other are taken as ranges. ERR_USAGE when more than SELECTOR_TERMS_MAX
 * terms are left. Nothing may be added afterwards. */
int selector_tidy(struct selector *s, struct err *e);

/* Whether this very job was named, by its number or as a task, and not only by a wider word. */
bool selector_names(const struct selector *s, uint32_t id, uint32_t array);

void selector_free(struct selector *s); /* what it owns; not s */

/* What is asked about a job. Borrowed. */
struct selector_job {
    uint32_t id;
    uint32_t array; /* the array it is a task of; 0: none */
    int32_t task;
    const char *name; /* or NULL */
    const char *user;
    const char *state;       /* "FAILED" */
    const char *const *tags; /* NULL-terminated; or NULL */
    bool is_last;            /* the caller's latest job */
};
bool selector_matches(const struct selector *s, const struct selector_job *job);

#endif
