/* Enters the GPUs that the probe describes into the ledger. */
#ifndef DAEMON_GPU_CARD_LIST_H
#define DAEMON_GPU_CARD_LIST_H

#include <jansson.h>

struct cards;

/* Handles the probe's hello: numbers new GPUs, updates known ones, and marks as removed those
 * that a GPU that answers no longer has. */
void cardlist_take(struct cards *cards, const json_t *hello);

#endif
