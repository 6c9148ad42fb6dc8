/* The GPUs that the probe describes, taken into the ledger. */
#ifndef DAEMON_GPU_CARD_LIST_H
#define DAEMON_GPU_CARD_LIST_H

#include <jansson.h>

struct cards;

/* The probe's hello: new GPUs get a number, known ones are described anew, and those that a GPU
 * that answers has no more are removed. */
void cardlist_take(struct cards *cards, const json_t *hello);

#endif
