/* One lock file per GPU UUID, so that two daemons never manage the same GPU. */
#ifndef DAEMON_GPU_CARD_LOCKS_H
#define DAEMON_GPU_CARD_LOCKS_H

struct cards;
struct err;

/* Locks the GPU for this daemon until it exits; idempotent. -1: another daemon holds it, which
 * e names. */
int gpulock_take(struct cards *cards, const char *uuid, struct err *e);
void gpulock_free_all(struct cards *cards);

#endif
