/* The jobs that a user wants to act on: the words of a request, permissions, and the ids that
 * go back. For the methods that change jobs. */
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

/* Reads the words; an empty list is an error, because "everything" must be said. Call
 * select_free whatever comes of it. */
int target_find(const struct roles *roles, const struct caller *c, const json_t *params,
                struct select *s, struct err *e);
/* The same, to do something to them: tasks that are named become jobs of their own, which only
 * their owner and admins may have done. */
int target_read(const struct roles *roles, const struct caller *c, const json_t *params,
                struct select *s, struct err *e);

/* Those of them that have not ended, in pieces (long_work.h). Zeroed at first, but for select;
 * target_walk_free at the end. */
struct target_walk {
    struct select select;    /* from target_read; owned */
    struct select_live live; /* those that may be meant, and once chosen, those that are */
    size_t at, kept;
    struct ids before;  /* owned, sorted: what was changed when this was asked before */
    size_t n_piece;     /* jobs that have come in this piece */
    int64_t text_piece; /* bytes of their texts, with which their rows are written */
    uint32_t array;     /* the one whose tasks come now, in several pieces; 0: none */
    uint32_t *tasks;    /* owned */
    size_t n_tasks, task_at;
    bool chosen;
    bool paused;             /* those that come may have changed since they were chosen */
    bool stopped;            /* target_walk_next has given NULL because it is late */
    struct select_past past; /* of target_none */
};
/* Finds out which jobs are meant, before anything is done: 1; 0 when it is late; -1 with e. */
int target_walk_choose(const struct instance *inst, const struct caller *c,
                       struct target_walk *w, int64_t until_us, struct err *e);
/* Then each of them that is still there; NULL: with `stopped` it is late, else that was all. No
 * more than a commit can take come in one piece. */
struct job *target_walk_next(const struct instance *inst, struct target_walk *w,
                             int64_t until_us);
/* Whether so many tasks have left this array that what is done to all of them goes in pieces:
 * then they come next, while w->array is theirs. */
bool target_walk_into(struct target_walk *w, const struct job *array);
void target_walk_free(struct target_walk *w);

/* Nothing could be done to any of them: -1, and e says why: what the last one said, where one
 * said something; else that the newest of those which were named has ended, or that there are
 * none. 0: that is being looked for, and it was late. */
int target_none(const struct instance *inst, struct target_walk *w, const json_t *params,
                int64_t until_us, struct err *last, struct err *e);

/* Only its owner and admins touch a job. */
int target_check_owner(const struct caller *c, const struct job *job, struct err *e);

#endif
