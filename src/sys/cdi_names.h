/* NVIDIA GPUs by their names in this machine's Container Device Interface (CDI)
 * specifications: https://github.com/cncf-tags/container-device-interface */
#ifndef SYS_CDI_NAMES_H
#define SYS_CDI_NAMES_H

#include <stdbool.h>

struct err;

struct cdi_names {
    char **list;      /* owned, with its texts; NULL: not needed */
    char *hook_cards; /* owned; UUIDs for NVIDIA's hook, used instead of CDI; NULL: no hook */
};
#define auto_cdi __attribute__((cleanup(cdi_free)))
void cdi_free(struct cdi_names *names);

/* Finds the CDI names of GPUs, given their UUIDs and their indices. -1 with words: the machine
 * has neither a specification of these GPUs nor a usable hook. */
int cdi_find(char *const *uuids, char *const *indices, struct cdi_names *out, struct err *e);

/* True if the machine has either a specification or the hook. */
bool cdi_is_ready(void);

#endif
