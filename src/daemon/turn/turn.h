/* One turn of the daemon: everything that arrived has been applied to the state; the plan is
 * made; one transaction makes it durable; only then clients are answered, followers get
 * events, jobs are launched and supervisors may forget. That order is the whole durability
 * argument, and it is kept here alone.
 *
 * The turn knows the state, the store and two small interfaces: the process that it is in
 * (struct turn_host), and the parts of the daemon that have something to do in it (struct
 * turn_part). turn_wiring.c lists the parts of berthd; tests/daemon/daemon_world.c puts another
 * in their place, and virtual time. */
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

/* What one part of the daemon does in a turn. The steps stand in the order in which a turn
 * comes to them; each may be NULL. In every step the parts follow in the order of their
 * table. */
struct turn_part {
    const char *name;
    void *arg; /* for its steps */

    /* --- what has come --- */

    /* What was seen since the last turn and is not applied to the state yet, is now. */
    void (*settle)(void *arg);
    /* Each change of the state (state/changes.h), once: all parts read one before any reads the
     * next. Takes what it cares about and changes nothing of the jobs. Changes that are noted
     * later in the turn are read before the commit, which writes their events. */
    void (*read)(void *arg, struct change *x);

    /* --- the plan --- */

    /* Brings up to date what a plan goes by. False: now is no time for one, and no part behind
     * this one is asked. */
    bool (*before_plan)(void *arg);
    /* It is made, and not carried out yet; it took so long. */
    void (*planned)(void *arg, const struct plan *p, int64_t took_us);

    /* --- the commit --- */

    /* A start (job->run) is about to be committed: makes what it has to find. False: it cannot
     * be; no part behind this one is asked, and the job waits as if it had not been planned. */
    bool (*prepare_start)(void *arg, struct job *job);
    /* All that can start in this commit are prepared. */
    void (*prepare)(void *arg);
    /* Within the transaction: what is kept of a job besides its rows, by the job's marks; what
     * else this part keeps; what this event, which is stored, is to lead to; and what follows
     * from all of these jobs together. */
    void (*write_job)(void *arg, const struct job *job);
    void (*write)(void *arg);
    void (*write_event)(void *arg, const struct change *x);
    void (*sum_up)(void *arg, struct job *const *jobs, size_t n);
    /* How it went: failed is NULL where all is durable. Not for a commit of nothing. */
    void (*measured)(void *arg, int64_t took_us, const struct err *failed);

    /* --- when it has failed --- */

    /* A start that was prepared is taken back; a new job goes. */
    void (*start_undone)(void *arg, const struct job *job);
    void (*job_gone)(void *arg, const struct job *job);
    void (*not_saved)(void *arg, const struct err *why);

    /* --- when it has succeeded --- */

    void (*saved)(void *arg);
    /* Answers that were held go out. Also after a failure, which they say then. */
    void (*answer)(void *arg, const struct err *failed);
    /* The events of this turn, for who follows them: those that have a kind. */
    void (*publish)(void *arg, const struct change *list, size_t n);
    /* After a plan: why this job, the first of its line, goes on waiting. */
    void (*tell_waiting)(void *arg, const struct job *job);
    /* A start is durable. All launches come before all that follows: a card is idle until
     * then. */
    void (*launch)(void *arg, struct job *job);
    /* So is what these marks (SAVE_*) said of the job; one that has ended goes next. */
    void (*act)(void *arg, const struct job *job, unsigned what);
    void (*finish)(void *arg);
};

/* Each is set anew where it is set already. */
enum turn_timer {
    TURN_NOW,  /* a turn is due: turn_run, at the end of this round of the loop */
    TURN_WAKE, /* the rest, when they are over: turn_timer_over */
    TURN_REST,
    TURN_RETRY,
    TURN_UPKEEP
};
#define TURN_TIMERS (TURN_UPKEEP + 1)

/* The process that the turn is in. */
struct turn_host {
    void *arg;
    void (*set_timer)(void *arg, enum turn_timer which, int64_t ms);
    void (*stop_timer)(void *arg, enum turn_timer which);
    /* What was done since the last call was this part of the turn; static. NULL: what was done
     * was none. */
    void (*spent)(void *arg, const char *what);
    /* There is quiet. True: there is more to do; call again soon. */
    bool (*upkeep)(void *arg);
    /* Behind each turn; saved: its commit has succeeded, and all of it took so long. */
    void (*after)(void *arg, bool saved, int64_t took_us);
};

/* state, store: borrowed, as is what the parts have in arg; the table is copied. */
struct turn *turn_new(struct state *s, struct store *store, const struct turn_host *host,
                      const struct turn_part *parts, size_t n);
void turn_free(struct turn *t);

/* Something happened: a turn is due. */
void turn_is_due(struct turn *t);
/* The same, where nothing has changed of what a plan depends on: a client only waits for an
 * answer, or has gone. A plan over many kinds of request is not made again for that. */
void turn_is_due_unplanned(struct turn *t);
/* A plan is to be made, but nothing has changed of what it depends on: it goes on with the
 * lines behind those at which the last one has looked. */
void turn_is_due_unchanged(struct turn *t);

/* Runs a turn now. 0, or -1 when the store refused (what was not saved stays marked). */
int turn_run(struct turn *t);
/* One that the turn had set (not TURN_NOW) is over. */
void turn_timer_over(struct turn *t, enum turn_timer which);

/* Why jobs wait is not stored: the next plans tell it again, for the jobs of this file; 0: of
 * all. */
void turn_tell_again(struct turn *t, uint32_t file);

/* What is wrong with the disk of our state, while nothing can be written to it. NULL: all is
 * well. */
const struct err *turn_trouble(const struct turn *t);
/* The words for those whose requests came with a commit that failed for this reason. */
void turn_say_not_saved(const struct err *why, struct err *e);

#endif
