/* Which backend reads this machine's GPUs. */
#ifndef PROBE_CHOOSE_BACKEND_H
#define PROBE_CHOOSE_BACKEND_H

#include "gpu/backend.h"

/* Opens the backend of that name, or for "auto" the first of nvml, nvidia-smi and drm that
 * finds a GPU (beside NVIDIA's, drm's are added), and discovers the cards. NULL with e when
 * there is none: what was tried, why it failed, what would work. The caller closes *state. */
const struct backend *choose_backend(const char *name, const struct backend_config *config,
                                     void **state, struct backend_machine *machine,
                                     struct err *e);

/* By its name; NULL: there is none. */
const struct backend *backend_named(const char *name);

#endif
