/* Shared by the files of the DRM backend. No other file includes this. */
#ifndef GPU_DRM_DRM_H
#define GPU_DRM_DRM_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "gpu/backend.h"
#include "gpu/drm/fdinfo.h"

#define DRM_KFD_NODES_MAX 128

enum drm_driver { DRM_AMDGPU, DRM_XE, DRM_I915 };

/* A GPU in use by the backend. */
struct drm_card {
    char *dir; /* ROOT/class/drm/cardN/device */
    enum drm_driver driver;
    char bus_id[CARD_BUS_MAX];
    uint32_t kfd_id; /* its id in KFD's files; 0: unknown to KFD */
};

/* A GPU of one of the drivers, used or not, and its numbers in /dev/dri. */
struct drm_place {
    char bus_id[CARD_BUS_MAX];
    int32_t card;
    int32_t render; /* -1: none */
};

/* A DRM client, that is an open file of /dev/dri, as last seen. */
struct drm_client {
    struct drm_client_key {
        uint64_t id, card;
    } key;
    uint64_t seen; /* number of the last sample that saw it */
    int n_engines;
    struct fdinfo_engine engines[FDINFO_ENGINES_MAX];
    UT_hash_handle hh;
};

struct drm {
    const struct backend_config *config;
    bool beside_nvidia; /* NVIDIA's driver was loaded when the backend was opened */
    int n;
    struct drm_card cards[GPU_MAX];
    int n_places;
    struct drm_place places[GPU_MAX]; /* at the last discovery */
    uint64_t samplings;
    int64_t sampled_us;         /* boot clock */
    struct drm_client *clients; /* hash table: a process may have 100,000 files open */
};

const char *drm_sys_root(const struct drm *drm);
const char *drm_proc_root(const struct drm *drm);

/* --- the GPUs; drm_cards.c --- */

/* Fills drm->cards and the machine with the usable GPUs, sorted by address. */
void drm_find_cards(struct drm *drm, struct backend_machine *out);
/* True if there is now a GPU that discovery did not find, or that had other numbers. */
bool drm_cards_differ(const struct drm *drm);

/* --- files of sysfs; drm_files.c --- */

/* Copies the value after "KEY=" or "KEY " in a text of such lines to out; false: there is
 * none. */
bool drm_find_value(const char *text, const char *key, char between, char *out, size_t size);
/* Path of the first entry of DIR/NAME that starts with prefix; NULL: none. The caller frees
 * it. */
char *drm_first_entry(const char *dir, const char *name, const char *prefix);

/* --- AMD's compute driver; drm_kfd.c --- */

/* A GPU as KFD lists it. A GPU divided into partitions has several nodes. */
struct drm_kfd_node {
    char bus_id[CARD_BUS_MAX];
    uint32_t id;
};

/* Lists the nodes in the order in which ROCm counts devices. Returns their number. */
int drm_kfd_nodes(const char *sys_root, struct drm_kfd_node out[DRM_KFD_NODES_MAX]);

/* Adds the memory of compute processes. */
void drm_kfd_add(const struct drm *drm, struct backend_sample *out);

/* --- processes; drm_clients.c --- */

/* Adds the processes that have the GPUs open, with their memory, and the load of GPUs that do
 * not report it. */
void drm_clients_add(struct drm *drm, struct backend_sample *out);
/* Drops the clients last seen before that sample. */
void drm_clients_forget(struct drm *drm, uint64_t before);

#endif
