/* The cards of the daemon that a front end works with. */
#ifndef COMPAT_ENGINE_COMPAT_CARDS_H
#define COMPAT_ENGINE_COMPAT_CARDS_H

#include <stdint.h>

#include "base/request.h"

struct client;
struct err;

struct compat_cards {
    uint64_t listed, there;      /* bits: the daemon knows of them; and they can be reached */
    int64_t total_mib[GPU_MAX];  /* -1: there never was such a card */
    int64_t listed_mib[GPU_MAX]; /* the same, of all that are listed; -1: it is not */
    int64_t least_free_mib; /* that any of those has beside what strangers use; -1: not known */
    char why_none[200];     /* where none is there */
};

void compat_cards_init(struct compat_cards *c);
/* As they are now. What one that has gone had stays known, for it may come back. Returns how
 * many there are; -1 with e. */
int compat_cards_read(struct compat_cards *c, struct client *client, struct err *e);

#endif
