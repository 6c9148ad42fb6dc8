/* From the wish to end a command, or its own end, to the record of the outcome. */
#ifndef SHEPHERD_ATTEMPT_STOP_H
#define SHEPHERD_ATTEMPT_STOP_H

#include <stdint.h>

#include "shepherd/attempt/outcome.h"

struct shepherd;

/* Stops the command with that grace, unless it has ended. The first cause stands, but for a
 * graver one. by: the user who requested it; copied. */
void stop_because(struct shepherd *a, enum cause cause, const char *by, int64_t grace_ms);

/* Keeps which process has sent this one TERM. The caller stops the command for it. */
void stop_note_term(struct shepherd *a, uint32_t pid, uint32_t uid);

/* Waits for all ended children, and ends the attempt when nothing is left. */
void stop_reap(struct shepherd *a);

/* wake_us has come: the limit, the end of the grace, the next pass of killing, the next try to
 * write the record. */
void stop_on_time(struct shepherd *a);

/* Nothing of the job is left, or it never started: the outcome is noted, reported and kept. */
void stop_end(struct shepherd *a);

/* A daemon has the outcome. */
void stop_recorded(struct shepherd *a);

/* After the end, and when the last daemon has gone since: waits for one that has the outcome,
 * and without any for the disk. */
void stop_wait_or_leave(struct shepherd *a);

#endif
