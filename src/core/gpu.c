/* Names of the states of a card and of its compute modes, both ways. */
#include "core/gpu.h"

#include <stddef.h>
#include <strings.h>

static const char *const state_names[GPU_STATES] = {
    [GPU_UP] = "up",     [GPU_PAUSED] = "paused",   [GPU_DRAINING] = "draining",
    [GPU_LOST] = "lost", [GPU_UNKNOWN] = "unknown", [GPU_SICK] = "sick",
};

static const char *const compute_names[] = {
    [GPU_COMPUTE_UNKNOWN] = NULL,
    [GPU_COMPUTE_DEFAULT] = "default",
    [GPU_COMPUTE_EXCLUSIVE] = "exclusive",
    [GPU_COMPUTE_PROHIBITED] = "prohibited",
};

const char *
gpu_state_name(enum gpu_state s)
{
    return state_names[s];
}

int
gpu_state_from_name(const char *name, enum gpu_state *out)
{
    for (int i = 0; i < GPU_STATES; i++) {
        if (strcasecmp(name, state_names[i]) == 0) {
            *out = (enum gpu_state)i;
            return 0;
        }
    }
    return -1;
}

const char *
gpu_compute_name(enum gpu_compute c)
{
    return compute_names[c];
}

int
gpu_compute_from_name(const char *name, enum gpu_compute *out)
{
    for (int i = GPU_COMPUTE_DEFAULT; i <= GPU_COMPUTE_PROHIBITED; i++) {
        if (strcasecmp(name, compute_names[i]) == 0) {
            *out = (enum gpu_compute)i;
            return 0;
        }
    }
    return -1;
}
