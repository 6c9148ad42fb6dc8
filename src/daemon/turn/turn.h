/* One turn of the daemon. Everything that arrived has been applied to the state; the turn
 * makes the plan, then makes all of it durable in one transaction, and only then answers
 * clients, sends events to followers, launches jobs and lets supervisors forget. Durability
 * rests entirely on this order, which only this module enforces.
 *
 * The turn depends on the state, the store and two small interfaces: its process (struct
 * turn_host) and the parts of the daemon that take part in it (struct turn_part).
 * turn_wiring.c lists the parts of berthd; tests/daemon/daemon_world.c substitutes its own,
 * and virtual time. */
#ifndef DAEMON_TURN_TURN_H
#define DAEMON_TURN_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct change;
struct err;
struct job;
struct plan;
struct state;
struct store;

/* What one part of the daemon does in a turn. The steps are listed in the order in which a
 * turn takes them; each may be NULL. In each step the parts run in the order of
 * their table. */
struct turn_part {
    const char *name;
    void *arg; /* for its steps */

    /* --- input --- */

    /* Applies to the state what the part has seen since the last turn. */
    void (*settle)(void *arg);
    /* Reads one change of the state (state/changes.h). All parts read a change before any
     * reads the next. Must not change jobs. Changes noted later in the turn are read before
     * the commit, which writes their events. */
    void (*read)(void *arg, struct change *x);

    /* --- the plan --- */

    /* Updates what the plan depends on. False: no plan can be made now; the remaining parts
     * are not asked. */
    bool (*before_plan)(void *arg);
    /* The plan is made and not carried out yet. took_us: the time it took. */
    void (*planned)(void *arg, const struct plan *p, int64_t took_us);

    /* --- the commit --- */

    /* A start (job->run) is about to be committed: prepares what the launch needs. False: it
     * cannot be prepared; the remaining parts are not asked, and the job waits as if it had
     * not been planned. */
    bool (*prepare_start)(void *arg, struct job *job);
    /* All starts of this commit are prepared. */
    void (*prepare)(void *arg);
    /* Within the transaction. write_job: what is stored of a job besides its rows, according
     * to its marks; write: the part's other data; write_event: what a stored event leads to;
     * sum_up: what follows from all these jobs together. */
    void (*write_job)(void *arg, const struct job *job);
    void (*write)(void *arg);
    void (*write_event)(void *arg, const struct change *x);
    void (*sum_up)(void *arg, struct job *const *jobs, size_t n);
    /* How the commit went; failed is NULL on success. Not called for an empty commit. */
    void (*measured)(void *arg, int64_t took_us, const struct err *failed);

    /* --- after a failed commit --- */

    /* A prepared start is taken back; a new job is removed. */
    void (*start_undone)(void *arg, const struct job *job);
    void (*job_gone)(void *arg, const struct job *job);
    void (*not_saved)(void *arg, const struct err *why);

    /* --- after a successful commit --- */

    void (*saved)(void *arg);
    /* Sends the held answers. Also called after a failed commit; the answers then report
     * the failure. */
    void (*answer)(void *arg, const struct err *failed);
    /* Sends this turn's events to followers: the changes that have a kind. */
    void (*publish)(void *arg, const struct change *list, size_t n);
    /* After a plan: reports why this job, the first of its line, keeps waiting. */
    void (*tell_waiting)(void *arg, const struct job *job);
    /* A start is durable. Launches come before all steps below, because the GPUs are idle
     * until then. */
    void (*launch)(void *arg, struct job *job);
    /* The changes with these marks (SAVE_*) are durable; a job that has ended is
     * removed next. */
    void (*act)(void *arg, const struct job *job, unsigned what);
    void (*finish)(void *arg);
};

/* Setting a timer that is already set restarts it. */
enum turn_timer {
    TURN_NOW,  /* a turn is due: turn_run at the end of this loop iteration */
    TURN_WAKE, /* this and the rest: turn_timer_over when they expire */
    TURN_REST,
    TURN_RETRY,
    TURN_UPKEEP
};
#define TURN_TIMERS (TURN_UPKEEP + 1)

/* The process that runs the turn. */
struct turn_host {
    void *arg;
    void (*set_timer)(void *arg, enum turn_timer which, int64_t ms);
    void (*stop_timer)(void *arg, enum turn_timer which);
    /* Accounting: the time since the last call was spent on this part of the turn (a static
     * string). NULL: it was spent outside the turn. */
    void (*spent)(void *arg, const char *what);
    /* Called when the daemon is quiet. True: more is left; call again soon. */
    bool (*upkeep)(void *arg);
    /* Called after each turn. saved: its commit succeeded; took_us: the whole turn. */
    void (*after)(void *arg, bool saved, int64_t took_us);
};

/* state, store and the parts' args are borrowed; the table is copied. */
struct turn *turn_new(struct state *s, struct store *store, const struct turn_host *host,
                      const struct turn_part *parts, size_t n);
void turn_free(struct turn *t);

/* Something has happened: requests a turn with a new plan. */
void turn_is_due(struct turn *t);
/* The same without a plan, for when nothing that it depends on has changed: a client only
 * waits for an answer, or has disconnected. This saves a plan over many kinds of request. */
void turn_is_due_unplanned(struct turn *t);
/* Requests a plan that continues with the lines after those that the last one examined:
 * nothing that a plan depends on has changed. */
void turn_is_due_unchanged(struct turn *t);

/* Runs a turn now. -1 if the store failed; what was not saved stays marked. */
int turn_run(struct turn *t);
/* A timer that the turn had set (not TURN_NOW) has expired. */
void turn_timer_over(struct turn *t, enum turn_timer which);

/* Has the next plans report again why jobs wait (which is not stored), for the jobs of this
 * file; 0: for all. */
void turn_tell_again(struct turn *t, uint32_t file);

/* The error of our state's disk while nothing can be written to it; NULL: none. */
const struct err *turn_trouble(const struct turn *t);
/* The error for clients whose requests were in a commit that failed for this reason. */
void turn_say_not_saved(const struct err *why, struct err *e);

#endif
