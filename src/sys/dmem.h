/* The cgroup v2 controller `dmem` (Linux 6.14 on): limits on device memory, by region. Only
 * regions of DRM drivers (amdgpu, xe) are used; the limits of NVIDIA's driver are set through
 * NVML. */
#ifndef SYS_DMEM_H
#define SYS_DMEM_H

#include <stddef.h>
#include <stdint.h>

/* Finds the region that is the memory of the GPU at this PCI address ("0000:03:00.0"), among
 * those listed by the root group at `root`: its key into out, its size into *bytes. Returns 1;
 * 0: there is none; more than 1: the GPU has that many regions (*bytes is their sum), so a
 * limit on one of them would not limit the GPU. */
int dmem_find_region(const char *root, const char *bus_id, char *out, size_t size,
                     int64_t *bytes);

/* Sets the group's limit (a descriptor of its folder) on the region; -1: no limit. 0, or -1
 * with errno. */
int dmem_set_max(int group_fd, const char *key, int64_t bytes);

/* The current or peak use of the region by the group at `path`; file: "dmem.current" or
 * "dmem.peak". -1: the kernel does not say. */
int64_t dmem_read_bytes(const char *path, const char *file, const char *key);

#endif
