/* One turn of the daemon: everything that arrived has been applied to the core; the plan
 * is made; one transaction makes it durable; only then clients are answered, followers are
 * told, jobs are launched and supervisors may forget. */
#ifndef DAEMON_TURN_TURN_H
#define DAEMON_TURN_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct err;
struct job;
struct jsonw;

/* What a commit has to write of a job; job->unsaved holds these. */
#define SAVE_INSERT      1u  /* it is new */
#define SAVE_JOB         2u  /* its row */
#define SAVE_ATTEMPT_NEW 4u  /* job->run is new */
#define SAVE_ATTEMPT     8u  /* job->run has changed */
#define SAVE_ENDED       16u /* it has reached a final state: out of the table once committed */
#define SAVE_SETTLED     32u /* the attempt is charged; its folder may go once committed */
#define SAVE_DETACH      64u /* its line is no longer its own: the key is free again */

struct turn *turn_new(struct daemon *d);
void turn_close(struct turn *t); /* closes its handles; free after the loop has run */
void turn_free(struct turn *t);

/* Something happened: a turn is run at the end of this iteration of the loop. */
void turn_touch(struct daemon *d);
/* The same, where nothing has changed of what a plan depends on: somebody only waits for an
 * answer, or has gone. A plan over many kinds of request is not made again for that. */
void turn_touch_unplanned(struct daemon *d);

/* Why jobs wait is not stored: with the next plans it is told again, of the jobs of this file;
 * 0: of all. */
void turn_retell_waiting(struct daemon *d, uint32_t file);

/* Marks what the next commit writes. */
void turn_save(struct daemon *d, struct job *job, unsigned what);

/* Begins an event of the stream (docs/protocol.md); add the kind's own fields to the writer
 * that comes back, then end it. It is stored and published with the commit. job NULL: the
 * machine's. */
struct jsonw *turn_event(struct daemon *d, const char *kind, const struct job *job);
void turn_event_end(struct daemon *d);

/* The newest job that is new in this turn (the store does not know it yet) and matches; or
 * NULL. */
struct job *turn_find_new(struct daemon *d, bool (*match)(const struct job *, const void *),
                          const void *arg);

/* Every job of which the store does not know all yet. */
void turn_each_unsaved(struct daemon *d, void (*fn)(const struct job *, void *), void *arg);

/* Runs a turn now, without waiting for the loop; for start-up. 0, or -1 when the store
 * refused (what was not saved stays marked). */
int turn_run(struct daemon *d);

/* What is wrong with the disk of our state, while nothing can be written to it: new work is
 * refused before it changes anything. NULL: all is well. */
const struct err *turn_disk_trouble(const struct daemon *d);

#endif
