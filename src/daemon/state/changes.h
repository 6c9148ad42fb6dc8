/* The changes of a turn, in the order in which they happened. The code that changes something
 * appends; every interested part reads each change once (turn_wiring.c lists the parts, in
 * order). Also keeps the list of jobs with unsaved changes. */
#ifndef DAEMON_STATE_CHANGES_H
#define DAEMON_STATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/queue/job.h"

/* What the next commit has to write of a job: bits of job->unsaved. */
#define SAVE_INSERT      1U   /* the job is new */
#define SAVE_JOB         2U   /* the job's row has changed */
#define SAVE_ATTEMPT_NEW 4U   /* job->run is new */
#define SAVE_ATTEMPT     8U   /* job->run has changed */
#define SAVE_ENDED       16U  /* reached a final state: leaves the table after the commit */
#define SAVE_SETTLED     32U  /* attempt is charged; its folder may go after the commit */
#define SAVE_DETACH      64U  /* detached from its jobs-file line; the key is free again */
#define SAVE_BACK        128U /* had ended, and is to run again */

enum change_type {
    CHANGE_SAID,    /* seen by another part, which has filled in kind and text */
    CHANGE_ENTERED, /* the job is in the table */
    CHANGE_STARTED, /* the plan assigned GPUs to it */
    CHANGE_ENDED,   /* reached a final state: state, exit_status, by, text */
    CHANGE_RETRIED, /* attempt is over, job waits again: vram_old, vram, begin_us */
    CHANGE_BACK,    /* by: a user requeued the ended job, now waiting; state: before */
    CHANGE_HELD,
    CHANGE_RELEASED,
    CHANGE_UPDATED,  /* its request has changed */
    CHANGE_PRIORITY, /* number: the new priority */
    CHANGE_CANCEL,   /* by: a user who wants it stopped */
    CHANGE_REQUEUE,  /* by: a user who wants it stopped and run again */
    CHANGE_PREEMPT,  /* stopped and run again to make way for the job `other` */
    CHANGE_DELAYED,  /* cannot start at begin_us as promised: text, other (the cause) */
    /* These are not stored: */
    CHANGE_CANCEL_MORE, /* cancelled again, perhaps with less grace */
    CHANGE_LAUNCHED,    /* its command was executed (for followers) */
    CHANGE_AWAITED,     /* its processes are gone, but its VRAM may not be free yet */
    CHANGE_DROPPED,     /* number of tasks that ended in `state` without leaving their array */
};

/* One change. Holds what readers need and may no longer find in the job when they read it. */
struct change {
    enum change_type type;
    uint32_t job, file; /* 0: none (of the machine as a whole) */
    bool of_live;       /* job was in the table then; only a take-back makes it vanish */
    int64_t at_us;
    bool is_asked; /* a user's request caused it: */
    uint32_t by_uid;
    char *by;   /* owned; NULL: nobody */
    char *text; /* owned; may be NULL */
    enum job_state state;
    int32_t exit_status, number, vram_old, vram;
    uint32_t other;
    int64_t begin_us;

    /* The event made of this change, filled in by a reader (event_text.c); for CHANGE_SAID by
     * the part that noted it. */
    char kind[16];   /* "": no event */
    bool hooks;      /* hooks are to report it */
    struct buf json; /* an object */
    struct buf line; /* the whole event with its number, once stored */
};

/* Requests a turn, with a new plan if `plan`. */
typedef void (*changes_wake_fn)(void *arg, bool plan);

struct changes {
    struct change *list;
    size_t n, cap;
    size_t n_read; /* changes already passed to the readers */
    struct job **unsaved;
    size_t n_unsaved, cap_unsaved;
    changes_wake_fn wake; /* may be NULL */
    void *wake_arg;
};

/* Appends a change. The pointer is valid until the next call. */
struct change *changes_add(struct changes *c, enum change_type type);
void change_free(struct change *x); /* frees only what it owns */
/* Drops the changes that have been read; the others stay for the next turn. Returns whether
 * any are left. */
bool changes_drop_read(struct changes *c);
void changes_wake(const struct changes *c, bool plan);
void changes_free(struct changes *c);

void changes_mark(struct changes *c, struct job *job, unsigned what);

/* The newest matching job that the store does not know yet, or NULL. */
struct job *changes_find_new(const struct changes *c,
                             bool (*match)(const struct job *, const void *), const void *arg);

/* Calls fn for each job with unsaved changes. */
void changes_each_unsaved(const struct changes *c, void (*fn)(const struct job *, void *),
                          void *arg);

#endif
