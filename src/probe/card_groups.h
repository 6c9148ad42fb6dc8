/* Groups of processes, as to what holds them to a part of a card's memory and how much of it
 * they have: by the backend, or by the kernel's dmem controller. */
#ifndef PROBE_CARD_GROUPS_H
#define PROBE_CARD_GROUPS_H

#include <stdint.h>

#include "gpu/backend.h"

/* Those whose use the next sample is to have. Zero-initialise. */
struct card_groups {
    struct backend_group *list;
    int n;
    size_t cap;
};

void card_groups_clear(struct card_groups *g);
void card_groups_free(struct card_groups *g);
/* "UUID PATH"; a card that is not known is passed over. */
void card_groups_add(struct card_groups *g, const struct backend_machine *m, const char *words);
/* Reads the use of each. */
void card_groups_read_use(struct card_groups *g, const struct backend *b, void *state,
                          const struct backend_machine *m);

/* Cards that their backend cannot limit: which the kernel can. It says Intel's sizes, too. */
void card_groups_find_dmem(struct backend_machine *m, const struct backend_config *config);

/* Once, for a supervisor: holds the group to so many MiB of each card ("UUID,UUID"); -1: to
 * nothing any more. All of them or none. 0, or -1 with e. */
int card_groups_cap(const struct backend *b, const struct backend_config *config,
                    const char *uuids, const char *group, int64_t mib, struct err *e);

#endif
