/* Reuses a supervisor for another attempt once nothing of the last one is left. */
#ifndef SHEPHERD_NURSERY_AGAIN_H
#define SHEPHERD_NURSERY_AGAIN_H

#include <stdbool.h>

#include "shepherd/attempt/attempt.h"

/* The SEQPACKET socket to the nursery of a reusable supervisor. */
#define FD_NURSERY (FD_FOLDER + 1)

/* Sent there by the supervisor when it can take another attempt. The nursery then sends a
 * NURSERY_AHEAD packet, or closes the socket. */
#define AGAIN_IDLE 'i'

/* Runs the attempt on descriptors 3 to 5, and those handed over after it. Returns the exit
 * status, as attempt_run. */
int again_run(bool ahead);

#endif
