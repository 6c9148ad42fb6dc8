/* Arrays in the daemon: tasks leave them, come back, end; the array's row and its end follow.
 * The books themselves are core/queue/array.h's. */
#ifndef DAEMON_STATE_ARRAY_TURNS_H
#define DAEMON_STATE_ARRAY_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct state;
struct err;

/* The task leaves as a job of its own, with this id (0: the next); it is in the table and will
 * be saved. */
struct job *arrays_split(struct state *s, struct job *array, int32_t task, uint32_t id);

/* A job has gone from one state to another. When it is a task its array hears of it, and ends
 * when that was the last. Nothing for other jobs. */
void arrays_moved(struct state *s, struct job *task, enum job_state from);

/* Whether a task may not start now because enough of its array run; then it is parked. */
bool arrays_keep_back(struct state *s, struct job *task);

/* A start that was not committed: the task is in its array again, and its job is gone. */
void arrays_unsplit(struct state *s, struct job *task);

/* The jobs that are its live tasks; the caller frees the array, not the jobs. */
struct job **arrays_live_tasks(const struct state *s, const struct job *array, size_t *n);

/* A task that was to run again does not after all: it has ended as it is stored. */
void arrays_ended_before(struct state *s, const struct job *task, const struct job *stored);

/* A caller that had raised tasks->returning of this array is done with it; it may end then. */
void arrays_returned(struct state *s, uint32_t id);

/* A job read from the store at start, after all with smaller ids. */
void arrays_recover(struct state *s, struct job *job);
/* When all have been: what a daemon before had begun is done to its end. The tasks of a
 * cancelled array are cancelled, and an array that was only kept from ending ends. */
void arrays_recovered(struct state *s);

#endif
