/* Holding the group of an attempt to its part of the cards' memory. The limits of NVIDIA's
 * driver are set by berth-probe, in a process of its own: the driver's library may hang, and
 * this program is static, so it cannot load it. */
#ifndef SHEPHERD_COMMON_VRAM_CAP_H
#define SHEPHERD_COMMON_VRAM_CAP_H

#include <jansson.h>
#include <stdint.h>

struct err;

/* As the daemon asked for it; strings belong to the JSON. */
struct cap_wish {
    int32_t mib;       /* on each card; 0: no cap */
    const char *by;    /* "nvml", "sim": the probe's backend for `gpus`; NULL: there are none */
    const char *gpus;  /* UUIDs with commas between them */
    const char *group; /* folder of the group; the simulator: any name */
    const char *sim_dir; /* the simulated cards; NULL: real ones */
    const json_t *keys;  /* regions of the cards that the kernel limits (dmem) */
};

/* The key "cap" of a spec. */
void vram_cap_read(const json_t *spec, struct cap_wish *out);

/* Sets it, on all cards or none. group_fd: the group's folder, -1 where there is none. -1 with
 * the driver's words; it takes at most 10 s. */
int vram_cap_set(const struct cap_wish *wish, int group_fd, struct err *e);

/* Lifts it; before the group goes. */
void vram_cap_clear(const struct cap_wish *wish);

#endif
