/* Parses what a DRM driver reports about one client, an open file of /dev/dri, in
 * /proc/PID/fdinfo/N: see the kernel's Documentation/gpu/drm-usage-stats.rst. Pure. */
#ifndef GPU_DRM_FDINFO_H
#define GPU_DRM_FDINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/backend.h"

#define FDINFO_NAME_MAX    24
#define FDINFO_ENGINES_MAX 16

/* Engines of one class. busy is in nanoseconds, or busy and total are in cycles of the
 * engines' clock. */
struct fdinfo_engine {
    char name[FDINFO_NAME_MAX];
    uint64_t busy;
    uint64_t total;    /* 0: busy is in nanoseconds */
    uint32_t capacity; /* engines in the class */
};

struct fdinfo {
    char driver[FDINFO_NAME_MAX];
    char bus_id[CARD_BUS_MAX]; /* "": not reported */
    bool has_client;
    uint64_t client;  /* the same for every copy of the descriptor, in any process */
    int64_t vram_kib; /* resident in the GPU's own memory; -1: not reported */
    int n_engines;
    struct fdinfo_engine engines[FDINFO_ENGINES_MAX];
};

/* 0, or -1 if the text is not that of a DRM client. */
int fdinfo_parse(const char *text, struct fdinfo *out);

#endif
