/* NVIDIA's cards by the names that the Container Device Interface (CDI) of this machine has for
 * them: https://github.com/cncf-tags/container-device-interface */
#ifndef SYS_CDI_NAMES_H
#define SYS_CDI_NAMES_H

#include <stdbool.h>

struct err;

struct cdi_names {
    char **list;      /* owned, with its texts; NULL: none are needed */
    char *hook_cards; /* owned; for NVIDIA's hook instead, the cards' UUIDs; NULL: no hook */
};
#define auto_cdi __attribute__((cleanup(cdi_free)))
void cdi_free(struct cdi_names *names);

/* Of cards by their UUIDs, and the same cards' numbers. -1 with words: the machine has no
 * specification of them, and no hook that would do. */
int cdi_find(char *const *uuids, char *const *indices, struct cdi_names *out, struct err *e);

/* Whether it has one of them. */
bool cdi_is_ready(void);

#endif
