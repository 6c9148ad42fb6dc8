/* Job arrays in the daemon: splits tasks off as jobs, puts them back, notes their ends, and
 * keeps the array's row and its own end in step. core/queue/array.h does the bookkeeping. */
#ifndef DAEMON_STATE_ARRAY_TURNS_H
#define DAEMON_STATE_ARRAY_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct state;
struct err;

/* Makes the task a job of its own with this id (0: the next free one). The job is in the table
 * and marked to be saved. */
struct job *arrays_split(struct state *s, struct job *array, int32_t task, uint32_t id);

/* Call when a job has changed state. If the job is a task, its array is updated, and ends with
 * its last task. No-op for other jobs. */
void arrays_moved(struct state *s, struct job *task, enum job_state from);

/* True if the task may not start now because its array already runs as many tasks as it may;
 * the task is then parked. */
bool arrays_keep_back(struct state *s, struct job *task);

/* Undoes a start that was not committed: the task is back in its array, and its job no
 * longer exists. */
void arrays_unsplit(struct state *s, struct job *task);

/* The jobs of the array's live tasks. The caller frees the list, not the jobs. */
struct job **arrays_live_tasks(const struct state *s, const struct job *array, size_t *n);

/* A requeue of an ended task was taken back: the array counts the task as ended again, with
 * the outcome that is stored. */
void arrays_ended_before(struct state *s, const struct job *task, const struct job *stored);

/* A caller that had raised tasks->returning of this array is done with it. While raised, it
 * keeps the array from ending; the array may end now. */
void arrays_returned(struct state *s, uint32_t id);

/* Adds a job read from the store at start-up. Call in ascending order of ids. */
void arrays_recover(struct state *s, struct job *job);
/* Call once all jobs are loaded: completes what the previous daemon had begun. Cancels the
 * remaining tasks of cancelled arrays, and ends arrays that only `returning` had kept
 * from ending. */
void arrays_recovered(struct state *s);

#endif
