/* The cgroup v2 controller `dmem` (Linux 6.14 on): limits on the memory of devices, by region.
 * Only regions of DRM drivers (amdgpu, xe) are looked for: NVIDIA's driver wants its own to be
 * set by NVML. */
#ifndef SYS_DMEM_H
#define SYS_DMEM_H

#include <stddef.h>
#include <stdint.h>

/* The region that is the memory of the card at this PCI address ("0000:03:00.0"), by what the
 * root group at `root` lists: its key into out, its size into *bytes. 1; 0: there is none;
 * more than 1: so many (of *bytes together), and then no limit on one of them would be one on
 * the card. */
int dmem_find_region(const char *root, const char *bus_id, char *out, size_t size,
                     int64_t *bytes);

/* The most that the group (a descriptor of its folder) may have of the region; -1: any. 0, or
 * -1 with errno. */
int dmem_set_max(int group_fd, const char *key, int64_t bytes);

/* What the group at `path` has of the region, or ever had at once: "dmem.current", "dmem.peak".
 * -1: the kernel does not say. */
int64_t dmem_read_bytes(const char *path, const char *file, const char *key);

#endif
