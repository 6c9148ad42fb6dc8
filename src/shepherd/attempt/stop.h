/* Ending an attempt: from a request to stop the command, or its own exit, to the recorded
 * outcome. */
#ifndef SHEPHERD_ATTEMPT_STOP_H
#define SHEPHERD_ATTEMPT_STOP_H

#include <stdint.h>

#include "shepherd/attempt/outcome.h"

struct shepherd;

/* Stops the command with that grace, unless it has ended. The first cause counts, unless a
 * later one is graver. by: the requesting user; copied. */
void stop_because(struct shepherd *a, enum cause cause, const char *by, int64_t grace_ms);

/* Notes which process sent TERM to this one; the command is stopped by stop_for_term. */
void stop_note_term(struct shepherd *a, uint32_t pid, uint32_t uid);

/* Stops the command if a TERM has been noted. */
void stop_for_term(struct shepherd *a);

/* Stops the command because its unit is being stopped, as when the machine shuts down. */
void stop_for_unit(struct shepherd *a);

/* Reaps ended children, and ends the attempt if nothing is left. */
void stop_reap(struct shepherd *a);

/* Call at wake_us: the limit, the end of the grace, the next pass of killing, or the next try
 * to write the record. */
void stop_on_time(struct shepherd *a);

/* Nothing of the job is left, or it never started: notes, reports and stores the outcome. */
void stop_end(struct shepherd *a);

/* A daemon has the outcome. */
void stop_recorded(struct shepherd *a);

/* After the end, and when the last daemon has disconnected since: waits for a daemon that has
 * the outcome or, without one, for the disk. */
void stop_wait_or_leave(struct shepherd *a);

#endif
