/* A folder that stands for /sys and /proc in tests of the DRM backend. */
#ifndef TESTS_GPU_DRM_TREE_H
#define TESTS_GPU_DRM_TREE_H

#include <stdint.h>

struct drm_tree {
    char *root; /* with "sys", "proc" and "cgroup" below it */
    char *sys, *proc, *cgroup;
};

void drm_tree_make(struct drm_tree *t);
void drm_tree_remove(struct drm_tree *t);

/* Writes text to ROOT/NAME; makes its folders. */
void drm_tree_put(const struct drm_tree *t, const char *text, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void drm_tree_delete(const struct drm_tree *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Renames ROOT/NAME within its folder. */
void drm_tree_rename(const struct drm_tree *t, const char *name, const char *other);

/* Adds a PCI device with that driver, with its entry cardN in class/drm and renderD(128+N)
 * below it. */
void drm_tree_add_card(const struct drm_tree *t, int n, const char *bus_id, const char *driver,
                       const char *pci_id);
/* Gives the number N of cardN to the card at that address; NULL: to no card. */
void drm_tree_move_card(const struct drm_tree *t, int n, const char *bus_id);
/* Writes a file of that card's device. */
void drm_tree_put_card(const struct drm_tree *t, const char *bus_id, const char *name,
                       const char *text);

/* Cards as real kernels show them. unique_id NULL: none. */
void drm_tree_add_mi210(const struct drm_tree *t, int n, const char *bus_id,
                        const char *unique_id);
void drm_tree_add_rx7900(const struct drm_tree *t, int n, const char *bus_id,
                         const char *unique_id);
/* An integrated AMD GPU. */
void drm_tree_add_apu(const struct drm_tree *t, int n, const char *bus_id);
void drm_tree_add_a770(const struct drm_tree *t, int n, const char *bus_id, const char *driver);

/* Adds a node of KFD's topology; simds 0: a CPU. */
void drm_tree_add_kfd(const struct drm_tree *t, int node, const char *bus_id, int simds,
                      unsigned gpu_id);

/* Adds a process with a descriptor of /dev/dri/NODE and the kernel's fdinfo for it. */
void drm_tree_add_fd(const struct drm_tree *t, int pid, int fd, const char *node,
                     const char *text);

#endif
