/* Errors that the driver wrote into the kernel's log, as reported by the probe: which GPU and
 * which job each concerns. */
#ifndef DAEMON_GPU_CARD_FAULTS_H
#define DAEMON_GPU_CARD_FAULTS_H

#include <jansson.h>

struct cards;

/* Handles one "faults" line of the probe (docs/protocol.md, section 3). */
void faults_take(struct cards *cards, const json_t *msg);

#endif
