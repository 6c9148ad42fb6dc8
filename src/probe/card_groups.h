/* Cgroups of processes with respect to a GPU's memory: limits it and reads its use, through
 * the backend or the kernel's dmem controller. */
#ifndef PROBE_CARD_GROUPS_H
#define PROBE_CARD_GROUPS_H

#include <stdint.h>

#include "gpu/backend.h"

/* The groups whose use goes into the next sample. Zero-initialise. */
struct card_groups {
    struct backend_group *list;
    int n;
    size_t cap;
};

void card_groups_clear(struct card_groups *g);
void card_groups_free(struct card_groups *g);
/* words: "UUID PATH"; an unknown GPU is ignored. */
void card_groups_add(struct card_groups *g, const struct backend_machine *m, const char *words);
/* Reads the use of each group. */
void card_groups_read_use(struct card_groups *g, const struct backend *b, void *state,
                          const struct backend_machine *m);

/* Finds the GPUs that their backend cannot limit but the kernel can; also sets the memory size
 * of Intel GPUs, which the kernel reports. */
void card_groups_find_dmem(struct backend_machine *m, const struct backend_config *config);

/* One-shot for a supervisor: limits the group to mib on each GPU ("UUID,UUID"); -1: lifts the
 * limits. On failure no limit stays set. 0, or -1 with e. */
int card_groups_cap(const struct backend *b, const struct backend_config *config,
                    const char *uuids, const char *group, int64_t mib, struct err *e);

#endif
