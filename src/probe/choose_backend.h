/* Selects the backend that reads this machine's GPUs. */
#ifndef PROBE_CHOOSE_BACKEND_H
#define PROBE_CHOOSE_BACKEND_H

#include "gpu/backend.h"

/* Opens the named backend, or for "auto" the first of nvml, nvidia-smi and drm that finds a
 * GPU (drm's GPUs are added to NVIDIA's), and discovers the GPUs. NULL with e if there is
 * none: what was tried, why it failed, what would work. The caller closes *state. */
const struct backend *choose_backend(const char *name, const struct backend_config *config,
                                     void **state, struct backend_machine *machine,
                                     struct err *e);

/* The backend with this name; NULL: there is none. */
const struct backend *backend_named(const char *name);

#endif
