/* Selectors of a request, evaluated over live jobs and the history. */
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
    bool everything;       /* no words were given */
    bool arrays_for_tasks; /* for lists: a task that has not left is shown by its array */
    uint32_t last_id;      /* what @ means for this caller; 0: it has no job */
    const char *user;      /* only this user's; NULL: any user's. Borrowed */
    uint32_t states;       /* only in one of these, a bit each; 0: in any */
    uint64_t gpus;         /* only on one of these, a bit each; 0: anywhere */
    const struct roles *roles;
    bool mine;   /* of wider words than an id only the caller's own jobs are meant */
    uid_t owner; /* with mine */
};

/* params: "select" (list of words; absent: everything), "user". */
int select_read(const struct roles *roles, uid_t caller, const json_t *params,
                struct select *out, struct err *e);
/* params: "state" (a list of names), "gpu" (a list of indices): for lists of jobs. */
int select_read_where(const json_t *params, struct select *s, struct err *e);
void select_free(struct select *s);

bool select_matches(const struct select *s, const struct job *job);

/* Called for an ended job of the history that matches, which is borrowed. Not 0 ends the walk,
 * or a piece of it. */
typedef int (*select_cb)(struct job *job, const char *const *uuids, void *arg);

/* Ids that a walk over the store can be bound to. */
struct select_ranges {
    struct store_range *v; /* owned */
    int n;
    size_t cap;
};
#define SELECT_FINAL_STATES ((1U << JOB_STATES) - (1U << JOB_COMPLETED))

/* A walk over the history, in pieces. What is not said is zero at first; select_past_free at
 * the end. */
struct select_past {
    bool newest_first;
    const struct store_filter *where; /* borrowed: what else must hold of final states; NULL */
    uint32_t next; /* from this id on, or below it; 0: from either end of the history */
    struct select_ranges ranges;
    int at; /* in the ranges */
    bool begun;
    /* Until then: the ranges of these terms and tasks are found. */
    size_t term;
    int32_t task;
    bool wide; /* ids do not bound it */
};
/* Goes on until the boot clock says until_us, which is looked at behind each job, or until cb
 * returns not 0, which is a piece's end as well. 1: all have been visited; 0: there are more;
 * -1 with e. */
int select_past_walk(const struct instance *inst, const struct select *s,
                     struct select_past *past, int64_t until_us, select_cb cb, void *arg,
                     struct err *e);
/* One that went newest first goes the other way from here, from this id on. */
void select_past_turn(struct select_past *past, uint32_t from);
void select_past_free(struct select_past *past);

/* All live jobs, or only those that are named and match, as they are named: unless they are
 * all looked up whether they match is not looked at. In pieces; zeroed at first, but for the
 * order; select_live_free at the end. */
struct select_live {
    enum lineup_order order;
    struct lineup *run; /* owned; while the list is made */
    uint32_t *ids;      /* owned; NULL: not made yet */
    size_t n;
};
/* Goes on until the boot clock says until_us, or for a piece. False: there is more to do. */
bool select_live_list(const struct instance *inst, const struct select *s,
                      struct select_live *live, int64_t until_us);
void select_live_free(struct select_live *live);

/* Ids that were named one by one (not in a range) and belong to no job: -1, and e names the
 * first few. */
int select_check_ids(const struct instance *inst, const struct select *s, struct err *e);

/* Whether a word names jobs by number, name or tag, so that one of them that has ended is worth
 * a word. `all`, a user's or a state's are what there is now. */
bool select_names_jobs(const struct select *s);
/* Drops the words that name no jobs (`all`, a user, a state), so that the rest can be looked up
 * in the history. */
void select_keep_names(struct select *s);
/* Whether this job matches by its state alone. *states gets the states that were named, a bit
 * each: an array matches with the state of the whole, and its tasks may have others. */
bool select_is_by_state(const struct select *s, const struct job *job, unsigned *states);
/* Whether the words say `all` and nothing else: where there is nothing, that is done
 * already. */
bool select_is_all(const struct select *s);

/* For verbs that need something to act on: an error that says what was not found, when the
 * words name ids that do not exist or match nothing. */
int select_none(const json_t *params, struct err *e);

#endif
