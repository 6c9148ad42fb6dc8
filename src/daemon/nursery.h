/* The process that forks shepherds, as the daemon sees it. */
#ifndef DAEMON_NURSERY_H
#define DAEMON_NURSERY_H

#include <stdbool.h>

struct err;
struct nursery;

/* Starts it. */
struct nursery *nursery_new(struct err *e);
bool nursery_is_alive(const struct nursery *n); /* as far as its end of the line says */
void nursery_free(struct nursery *n); /* closes the conversation, on which it leaves */

/* Has a shepherd (kind NURSERY_ATTEMPT) or a sweeper (NURSERY_SWEEP) forked with these
 * descriptors, which stay the caller's. A nursery that has died is replaced. 0 means that
 * the packet was taken; whether the shepherd lives is seen by its connection. */
int nursery_ask(struct nursery *n, char kind, int ctl, int lock, int folder, struct err *e);

#endif
