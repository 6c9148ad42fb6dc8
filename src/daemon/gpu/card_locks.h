/* One lock file per GPU UUID, so that two daemons never manage one card. */
#ifndef DAEMON_GPU_CARD_LOCKS_H
#define DAEMON_GPU_CARD_LOCKS_H

struct cards;
struct err;

/* Takes the card for this daemon until it ends; taking it again is fine. -1: another daemon
 * has it, and e names it. */
int gpulock_take(struct cards *cards, const char *uuid, struct err *e);
void gpulock_free_all(struct cards *cards);

#endif
