/* Enforces an attempt's VRAM cap on its group. berth-probe sets the limits of NVIDIA's driver
 * in a separate process: the driver's library may hang, and this program is static and cannot
 * load it. */
#ifndef SHEPHERD_COMMON_VRAM_CAP_H
#define SHEPHERD_COMMON_VRAM_CAP_H

#include <jansson.h>
#include <stdint.h>

struct err;

/* As requested by the daemon; the JSON owns the strings. */
struct cap_wish {
    int32_t mib;       /* on each GPU; 0: no cap */
    const char *by;    /* "nvml", "sim": the probe's backend for `gpus`; NULL: there are none */
    const char *gpus;  /* comma-separated UUIDs */
    const char *group; /* folder of the group; for the simulator, any name */
    const char *sim_dir; /* folder of the simulated GPUs; NULL: real ones */
    const json_t *keys;  /* regions of GPUs that the kernel limits (dmem) */
};

/* The key "cap" of a spec. */
void vram_cap_read(const json_t *spec, struct cap_wish *out);

/* Sets the cap on all GPUs or none, within 10 s. group_fd: the group's folder, -1: none. -1
 * with the driver's message. */
int vram_cap_set(const struct cap_wish *wish, int group_fd, struct err *e);

/* Lifts the cap; call it before the group is removed. */
void vram_cap_clear(const struct cap_wish *wish);

#endif
