/* The jobs that a request acts on: its words, permissions, and the ids to return. For the
 * methods that change jobs. */
#ifndef DAEMON_REQUEST_SELECTION_WALK_H
#define DAEMON_REQUEST_SELECTION_WALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/request/id_list.h"
#include "daemon/request/selection.h"

struct caller;
struct instance;
struct roles;
struct err;
struct job;
struct jsonw;

/* Reads the words. An empty list is an error, because "everything" must be explicit. Call
 * select_free in any case. */
int target_find(const struct roles *roles, const struct caller *c, const json_t *params,
                struct select *s, struct err *e);
/* The same in order to change the jobs: named tasks become jobs of their own, which only their
 * owner and admins may cause. */
int target_read(const struct roles *roles, const struct caller *c, const json_t *params,
                struct select *s, struct err *e);

/* Walks over the selected jobs that have not ended, in pieces (long_work.h). Zero-initialise
 * all but select; call target_walk_free at the end. */
struct target_walk {
    struct select select;    /* from target_read; owned */
    struct select_live live; /* candidates; once chosen, the selected jobs */
    size_t at, kept;
    struct ids before;  /* owned, sorted: jobs that an earlier try of this request changed */
    size_t n_piece;     /* jobs returned in this piece */
    int64_t text_piece; /* bytes of their texts, which are written with their rows */
    uint32_t array;     /* array whose tasks come now, in several pieces; 0: none */
    uint32_t *tasks;    /* owned */
    size_t n_tasks, task_at;
    bool chosen;
    bool paused;             /* jobs may have changed since they were chosen */
    bool stopped;            /* target_walk_next returned NULL because time was up */
    struct select_past past; /* for target_none */
};
/* Determines the selected jobs before any is changed: 1; 0: time is up, call again; -1
 * with e. */
int target_walk_choose(const struct instance *inst, const struct caller *c,
                       struct target_walk *w, int64_t until_us, struct err *e);
/* The next selected job that still exists. NULL: time is up if `stopped`, else done. A piece
 * has no more jobs than one commit can take. */
struct job *target_walk_next(const struct instance *inst, struct target_walk *w,
                             int64_t until_us);
/* True if so many tasks have left this array that changing them takes several pieces: the walk
 * then returns them next, while w->array is the array's id. */
bool target_walk_into(struct target_walk *w, const struct job *array);
void target_walk_free(struct target_walk *w);

/* For when no job could be changed: -1 with the reason in e: the last error, if any; else that
 * the newest named job has ended, or that no job matches. 0: time is up, call again. */
int target_none(const struct instance *inst, struct target_walk *w, const json_t *params,
                int64_t until_us, struct err *last, struct err *e);

/* Refuses users other than the job's owner and admins. */
int target_check_owner(const struct caller *c, const struct job *job, struct err *e);

#endif
