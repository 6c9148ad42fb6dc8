/* What the kernel reports about a GPU without asking the driver: none of this can hang. */
#ifndef GPU_SYSFS_H
#define GPU_SYSFS_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/backend.h"

/* For a version mismatch between the kernel's driver and the libraries. */
#define SYSFS_MISMATCH_ADVICE                                                                  \
    "the driver was upgraded, but the old kernel module is still loaded: reboot, or reload "   \
    "the "                                                                                     \
    "nvidia modules (running GPU programs continue, new ones cannot start)"

/* The first line of DIR/NAME, "" if it is empty; NULL if it cannot be read. The caller frees
 * it. */
char *sysfs_read_line(const char *dir, const char *name);
/* Reads a non-negative number; -1 if it cannot be read. */
int64_t sysfs_read_number(const char *dir, const char *name);

/* Writes a PCI address to out as the kernel's folders spell it: lower case with a domain of
 * four digits, "0000:01:00.0", also from NVML's "00000000:01:00.0". 0, or -1 if text is not a
 * PCI address. */
int sysfs_bus_id(const char *text, char *out, size_t size);

/* Sets numa from ROOT/bus/pci/devices/BUS/numa_node; on a machine with one node this contains
 * -1, and the field stays unreported. root NULL: /sys. */
void sysfs_fill_numa(const char *root, struct backend_card *card);

/* Adds the machine's NUMA nodes that have CPUs. root: as above. */
void sysfs_find_nodes(const char *root, struct backend_machine *m);

/* Writes the loaded driver's version ("550.54.14") from PROC/driver/nvidia/version to out, ""
 * if there is none. proc NULL: /proc. */
void sysfs_driver_version(const char *proc, char *out, size_t size);

/* The addresses of the GPUs that NVIDIA's driver has, in their order, from
 * PROC/driver/nvidia/gpus, without those that it was told to exclude and those without a device
 * file here; at most max. How many. proc NULL: /proc. */
int sysfs_nvidia_gpus(const char *proc, char (*out)[CARD_BUS_MAX], int max);

/* Sets the device numbers through which a MIG instance is opened, from
 * PROC/driver/nvidia/capabilities; -1 if not reported. proc NULL: /proc. */
void sysfs_fill_mig_caps(const char *proc, struct backend_card *card);

/* The major number of /dev/nvidia-caps, from PROC/devices; 0: none. */
int32_t sysfs_mig_major(const char *proc);

#endif
