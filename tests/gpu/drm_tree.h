/* A folder that plays /sys and /proc for the DRM backend. */
#ifndef TESTS_GPU_DRM_TREE_H
#define TESTS_GPU_DRM_TREE_H

#include <stdint.h>

struct drm_tree {
    char *root; /* with "sys", "proc" and "cgroup" below it */
    char *sys, *proc, *cgroup;
};

void drm_tree_make(struct drm_tree *t);
void drm_tree_remove(struct drm_tree *t);

/* ROOT/NAME := text; makes its folders. */
void drm_tree_put(const struct drm_tree *t, const char *text, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void drm_tree_delete(const struct drm_tree *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* ROOT/NAME, in the same folder. */
void drm_tree_rename(const struct drm_tree *t, const char *name, const char *other);

/* A PCI device with that driver and its entry cardN in class/drm, renderD(128+N) below it. */
void drm_tree_add_card(const struct drm_tree *t, int n, const char *bus_id, const char *driver,
                       const char *pci_id);
/* cardN is from now on the number of the card at that address; NULL: of none. */
void drm_tree_move_card(const struct drm_tree *t, int n, const char *bus_id);
/* A file of that card's device. */
void drm_tree_put_card(const struct drm_tree *t, const char *bus_id, const char *name,
                       const char *text);

/* Cards as kernels show them. unique_id NULL: none. */
void drm_tree_add_mi210(const struct drm_tree *t, int n, const char *bus_id,
                        const char *unique_id);
void drm_tree_add_rx7900(const struct drm_tree *t, int n, const char *bus_id,
                         const char *unique_id);
/* An integrated GPU of AMD. */
void drm_tree_add_apu(const struct drm_tree *t, int n, const char *bus_id);
void drm_tree_add_a770(const struct drm_tree *t, int n, const char *bus_id, const char *driver);

/* A node of KFD's topology; simds 0: a CPU. */
void drm_tree_add_kfd(const struct drm_tree *t, int node, const char *bus_id, int simds,
                      unsigned gpu_id);

/* A process with a descriptor of /dev/dri/NODE and what the kernel says about it. */
void drm_tree_add_fd(const struct drm_tree *t, int pid, int fd, const char *node,
                     const char *text);

#endif
