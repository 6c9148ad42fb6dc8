/* A supervisor that takes another attempt when nothing of its last one is left. */
#ifndef SHEPHERD_NURSERY_AGAIN_H
#define SHEPHERD_NURSERY_AGAIN_H

#include <stdbool.h>

#include "shepherd/attempt/attempt.h"

/* Where a supervisor that may be used again has its SEQPACKET socket to the nursery. */
#define FD_NURSERY (FD_FOLDER + 1)

/* What it says there when it could take another attempt. The nursery sends it a packet of kind
 * NURSERY_AHEAD then, or closes the socket. */
#define AGAIN_IDLE 'i'

/* Runs the attempt on descriptors 3 to 5 and those that are handed over after it. The exit
 * status of the process, as attempt_run's. */
int again_run(bool ahead);

#endif
