/* What the kernel says about a card without asking the driver: none of this can hang. */
#ifndef GPU_SYSFS_H
#define GPU_SYSFS_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/backend.h"

/* For when the kernel's driver and the libraries are of two versions. */
#define SYSFS_MISMATCH_ADVICE                                                                  \
    "the driver was upgraded, but the old kernel module is still loaded: reboot, or reload "   \
    "the "                                                                                     \
    "nvidia modules (running GPU programs continue, new ones cannot start)"

/* The first line of DIR/NAME, "" when it is empty; NULL when it cannot be read. The caller
 * frees. */
char *sysfs_read_line(const char *dir, const char *name);
/* A number from 0 on; -1 when it cannot be read. */
int64_t sysfs_read_number(const char *dir, const char *name);

/* Puts a PCI address as the kernel's folders spell it into out: lower case and a domain of
 * four digits, "0000:01:00.0", whatever NVML ("00000000:01:00.0") made of it. 0, or -1
 * when it is no PCI address. */
int sysfs_bus_id(const char *text, char *out, size_t size);

/* Fills numa from ROOT/bus/pci/devices/BUS/numa_node; a machine of one node says -1 there,
 * which leaves the field not reported. root NULL: /sys. */
void sysfs_fill_numa(const char *root, struct backend_card *card);

/* The machine's NUMA nodes that have CPUs. root: as above. */
void sysfs_find_nodes(const char *root, struct backend_machine *m);

/* The loaded driver's version ("550.54.14") from PROC/driver/nvidia/version into out, ""
 * where there is none. proc NULL: /proc. */
void sysfs_driver_version(const char *proc, char *out, size_t size);

/* The addresses of the GPUs that NVIDIA's driver has, in their order, from
 * PROC/driver/nvidia/gpus, without those that it was told to exclude and those without a device
 * file here; at most max. How many. proc NULL: /proc. */
int sysfs_nvidia_gpus(const char *proc, char (*out)[CARD_BUS_MAX], int max);

/* Fills in the numbers of the devices that a MIG instance is opened by, from
 * PROC/driver/nvidia/capabilities; -1 where it does not say. proc NULL: /proc. */
void sysfs_fill_mig_caps(const char *proc, struct backend_card *card);

/* The major number of /dev/nvidia-caps, from PROC/devices; 0: there is none. */
int32_t sysfs_mig_major(const char *proc);

#endif
