/* What the kernel says about a card without asking the driver: none of this can hang. */
#ifndef GPU_SYSFS_H
#define GPU_SYSFS_H

#include <stddef.h>

struct backend_card;

/* For when the kernel's driver and the libraries are of two versions. */
#define SYSFS_MISMATCH_ADVICE                                                                  \
    "the driver was upgraded, but the old kernel module is still loaded: reboot, or reload "   \
    "the "                                                                                     \
    "nvidia modules (running GPU programs continue, new ones cannot start)"

/* Puts a PCI address as the kernel's folders spell it into out: lower case and a domain of
 * four digits, "0000:01:00.0", whatever NVML ("00000000:01:00.0") made of it. 0, or -1
 * when it is no PCI address. */
int sysfs_bus_id(const char *text, char *out, size_t size);

/* Fills numa from ROOT/bus/pci/devices/BUS/numa_node; a machine of one node says -1 there,
 * which leaves the field not reported. root NULL: /sys. */
void sysfs_fill_numa(const char *root, struct backend_card *card);

/* The loaded driver's version ("550.54.14") from PROC/driver/nvidia/version into out, ""
 * where there is none. proc NULL: /proc. */
void sysfs_driver_version(const char *proc, char *out, size_t size);

#endif
