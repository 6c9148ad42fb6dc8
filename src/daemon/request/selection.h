/* Selectors of a request, matched against live jobs and the history. */
#ifndef DAEMON_REQUEST_SELECTION_H
#define DAEMON_REQUEST_SELECTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/plan/lineup.h"
#include "core/queue/job.h"
#include "spec/selector.h"

struct instance;
struct roles;
struct err;
struct store_filter;
struct store_range;

struct select {
    struct selector selector;
    bool everything;       /* no selector words were given */
    bool arrays_for_tasks; /* for lists: show a task in its array by the array */
    uint32_t last_id;      /* meaning of @ for this caller; 0: it has no job */
    const char *user;      /* only this user's jobs; NULL: any. Borrowed */
    uint32_t states;       /* only jobs in these states, a bit each; 0: any */
    uint64_t gpus;         /* only jobs on these GPUs, a bit each; 0: any */
    const struct roles *roles;
    bool mine;   /* words other than ids select only the owner's jobs */
    uid_t owner; /* with mine */
};

/* Reads the params "select" (list of words; absent: everything) and "user". */
int select_read(const struct roles *roles, uid_t caller, const json_t *params,
                struct select *out, struct err *e);
/* Reads the params "state" (list of names) and "gpu" (list of indices), for lists of jobs. */
int select_read_where(const json_t *params, struct select *s, struct err *e);
void select_free(struct select *s);

bool select_matches(const struct select *s, const struct job *job);

/* Called for each matching ended job of the history, which is borrowed. Non-zero ends the walk
 * or a piece of it. */
typedef int (*select_cb)(struct job *job, const char *const *uuids, void *arg);

/* Id ranges to which a walk over the store is limited. */
struct select_ranges {
    struct store_range *v; /* owned */
    int n;
    size_t cap;
};
#define SELECT_FINAL_STATES ((1U << JOB_STATES) - (1U << JOB_COMPLETED))

/* A walk over the history in pieces. Zero-initialise all but the options; call
 * select_past_free at the end. */
struct select_past {
    bool newest_first;
    const struct store_filter *where; /* borrowed: conditions on ended jobs; NULL: none */
    uint32_t next; /* resume at this id, or below it; 0: at an end of the history */
    struct select_ranges ranges;
    int at; /* index in the ranges */
    bool begun;
    /* Progress of finding the ranges: by term, and by task within a term. */
    size_t term;
    int32_t task;
    bool wide; /* not limited by ids */
};
/* Continues until the boot clock reaches until_us (checked after each job), or until cb
 * returns non-zero, which also ends a piece. 1: all visited; 0: more left; -1 with e. */
int select_past_walk(const struct instance *inst, const struct select *s,
                     struct select_past *past, int64_t until_us, select_cb cb, void *arg,
                     struct err *e);
/* Turns a newest-first walk around: it continues upwards from this id. */
void select_past_turn(struct select_past *past, uint32_t from);
void select_past_free(struct select_past *past);

/* A list of live jobs, made in pieces: all of them, or, if the words are only ids, the named
 * ones that match, in the order named. Unless looked up by id, jobs are not matched here.
 * Zero-initialise all but the order; call select_live_free at the end. */
struct select_live {
    enum lineup_order order;
    struct lineup *run; /* owned; while the list is being made */
    uint32_t *ids;      /* owned; NULL: not made yet */
    size_t n;
};
/* Continues until the boot clock reaches until_us, or for one piece. False: more to do. */
bool select_live_list(const struct instance *inst, const struct select *s,
                      struct select_live *live, int64_t until_us);
void select_live_free(struct select_live *live);

/* -1 if ids that were named singly (not in a range) do not exist; e names the first few. */
int select_check_ids(const struct instance *inst, const struct select *s, struct err *e);

/* True if a word names jobs by id, name or tag, so that it is worth reporting that they have
 * ended. `all`, a user or a state mean only current jobs. */
bool select_names_jobs(const struct select *s);
/* Drops words that name no jobs (`all`, a user, a state), so that the rest can be looked up in
 * the history. */
void select_keep_names(struct select *s);
/* True if the job matches only by its state. *states: the named states, a bit each. An array
 * matches by its own state, and its tasks may have others. */
bool select_is_by_state(const struct select *s, const struct job *job, unsigned *states);
/* True if the words say only `all`: with no jobs at all, the request has then succeeded. */
bool select_is_all(const struct select *s);

/* For verbs that need a job: an error that says what was not found, if the words match nothing
 * or name ids that do not exist. */
int select_none(const json_t *params, struct err *e);

#endif
