/* What has changed in a turn, in the order in which it did: appended by the code that changes
 * something, read once by every part that cares (turn_wiring.c lists them, in their order).
 * And which jobs the store does not know all of yet. */
#ifndef DAEMON_STATE_CHANGES_H
#define DAEMON_STATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/queue/job.h"

/* What a commit has to write of a job; job->unsaved holds these. */
#define SAVE_INSERT      1U  /* it is new */
#define SAVE_JOB         2U  /* its row */
#define SAVE_ATTEMPT_NEW 4U  /* job->run is new */
#define SAVE_ATTEMPT     8U  /* job->run has changed */
#define SAVE_ENDED       16U /* it has reached a final state: out of the table once committed */
#define SAVE_SETTLED     32U /* the attempt is charged; its folder may go once committed */
#define SAVE_DETACH      64U /* its line is no longer its own: the key is free again */
#define SAVE_BACK        128U /* it had ended, and is to run again */

enum change_type {
    CHANGE_SAID,    /* what another part saw happen: kind and text are written already */
    CHANGE_ENTERED, /* the job is in the table */
    CHANGE_STARTED, /* the plan gave it cards */
    CHANGE_ENDED,   /* it has reached a final state: state, exit_status, by, text */
    CHANGE_RETRIED, /* its attempt is over and it waits again: vram_old, vram, begin_us */
    CHANGE_BACK,    /* by: a person has it run again, and it waits; state: from which */
    CHANGE_HELD,
    CHANGE_RELEASED,
    CHANGE_UPDATED,  /* its request is another */
    CHANGE_PRIORITY, /* number */
    CHANGE_CANCEL,   /* by: it is to be stopped */
    CHANGE_REQUEUE,  /* by: it is to be stopped, to run again */
    CHANGE_PREEMPT,  /* the same, to make way for the job `other` */
    CHANGE_DELAYED,  /* its promised start, begin_us, cannot be kept: text, and for which job */
    /* Of these nothing is stored: */
    CHANGE_CANCEL_MORE, /* it was to be stopped before: perhaps with less grace */
    CHANGE_LAUNCHED,    /* its command has been executed (for followers) */
    CHANGE_AWAITED,     /* its processes are gone, its memory is not yet known to be back */
    CHANGE_DROPPED,     /* number: so many tasks ended in `state` and never left their array */
};

/* What its readers need and cannot see in the job any more when they read it. */
struct change {
    enum change_type type;
    uint32_t job, file; /* 0: none: it is the machine's */
    bool of_live;       /* the job was in the table, and leaves it only if it is taken back */
    int64_t at_us;
    bool is_asked; /* by a user's request: */
    uint32_t by_uid;
    char *by;   /* owned, may be NULL, as may text */
    char *text; /* owned */
    enum job_state state;
    int32_t exit_status, number, vram_old, vram;
    uint32_t other;
    int64_t begin_us;

    /* The event that it makes, by its reader (turn_events.c); of CHANGE_SAID by its writer. */
    char kind[16];   /* "": none */
    bool hooks;      /* a hook is to report it */
    struct buf json; /* an object */
    struct buf line; /* with its number and the rest in front, once it is stored */
};

/* Something has happened, so that there is to be a turn, perhaps with a plan. */
typedef void (*changes_wake_fn)(void *arg, bool plan);

struct changes {
    struct change *list;
    size_t n, cap;
    size_t n_read; /* so many have been passed on */
    struct job **unsaved;
    size_t n_unsaved, cap_unsaved;
    changes_wake_fn wake; /* may be NULL */
    void *wake_arg;
};

/* A new one, at the end, until the next call. */
struct change *changes_add(struct changes *c, enum change_type type);
void change_free(struct change *x); /* what it owns */
/* Those that have been passed on go; the others stay, for the next turn. Whether there are
 * any. */
bool changes_drop_read(struct changes *c);
void changes_wake(const struct changes *c, bool plan);
void changes_free(struct changes *c);

void changes_mark(struct changes *c, struct job *job, unsigned what);

/* The newest job that is new (the store does not know it yet) and matches; or NULL. */
struct job *changes_find_new(const struct changes *c,
                             bool (*match)(const struct job *, const void *), const void *arg);

/* Every job of which the store does not know all yet. */
void changes_each_unsaved(const struct changes *c, void (*fn)(const struct job *, void *),
                          void *arg);

#endif
