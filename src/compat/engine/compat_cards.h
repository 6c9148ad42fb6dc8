/* The GPUs of the daemon that a front end uses. */
#ifndef COMPAT_ENGINE_COMPAT_CARDS_H
#define COMPAT_ENGINE_COMPAT_CARDS_H

#include <stdint.h>

#include "base/request.h"

struct client;
struct err;

struct compat_cards {
    uint64_t listed, there;      /* bit sets: GPUs the daemon lists; those not lost */
    int64_t total_mib[GPU_MAX];  /* last known size; -1: never seen */
    int64_t listed_mib[GPU_MAX]; /* current size of each listed GPU; -1: not listed */
    int64_t least_free_mib;      /* smallest total less foreign use, of listed GPUs; -1: not
                                    known */
    char why_none[200];          /* reason to show if no GPU is there */
};

void compat_cards_init(struct compat_cards *c);
/* Read the current state. total_mib of a lost GPU is kept, since it may come back. Returns the
 * number of reachable GPUs; -1 with e. */
int compat_cards_read(struct compat_cards *c, struct client *client, struct err *e);

#endif
