/* Cards of NVIDIA and others in one machine: two backends as one, whose cards come after one
 * another. */
#ifndef PROBE_JOINED_BACKEND_H
#define PROBE_JOINED_BACKEND_H

#include "gpu/backend.h"

/* Adds the DRM backend's cards to the machine. Owns both states from here on; *state is the new
 * one's. `first` is nvml or nvidia-smi. */
const struct backend *joined_backend_make(const struct backend *first, void *first_state,
                                          void *drm_state, struct backend_machine *machine,
                                          const struct backend_machine *drm, void **state);

#endif
