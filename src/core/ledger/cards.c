/* Names for sets of cards, states, vendors and compute modes. */
#include "core/ledger/cards.h"

#include <stddef.h>
#include <strings.h>

#include "base/buf.h"

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

static const char *const cap_names[] = {[GPU_CAP_NONE] = NULL,
                                        [GPU_CAP_NVML] = "nvml",
                                        [GPU_CAP_DMEM] = "dmem",
                                        [GPU_CAP_SIM] = "sim"};

static const char *const vendor_names[] = {[GPU_VENDOR_NONE] = NULL,
                                           [GPU_VENDOR_NVIDIA] = "nvidia",
                                           [GPU_VENDOR_AMD] = "amd",
                                           [GPU_VENDOR_INTEL] = "intel"};

void
gpu_set_text(uint64_t set, struct buf *out)
{
    buf_adds(out, (set & (set - 1)) != 0 ? "gpus " : "gpu ");
    const char *between = "";
    while (set) {
        int first = __builtin_ctzll(set), last = first;
        while (last < 63 && (set >> (last + 1) & 1))
            last++;
        buf_addf(out, "%s%d", between, first);
        if (last > first)
            buf_addf(out, "%c%d", last > first + 1 ? '-' : ',', last);
        set = last == 63 ? 0 : set >> (last + 1) << (last + 1);
        between = ",";
    }
}

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

const char *
gpu_vendor_name(enum gpu_vendor v)
{
    return vendor_names[v];
}

enum gpu_vendor
gpu_vendor_from_name(const char *name)
{
    for (int i = GPU_VENDOR_NVIDIA; name && i < GPU_VENDORS; i++) {
        if (strcasecmp(name, vendor_names[i]) == 0)
            return (enum gpu_vendor)i;
    }
    return GPU_VENDOR_NONE;
}

const char *
gpu_cap_name(enum gpu_cap c)
{
    return cap_names[c];
}

int
gpu_cap_from_name(const char *name, enum gpu_cap *out)
{
    for (int i = GPU_CAP_NVML; i <= GPU_CAP_SIM; i++) {
        if (strcasecmp(name, cap_names[i]) == 0) {
            *out = (enum gpu_cap)i;
            return 0;
        }
    }
    return -1;
}
