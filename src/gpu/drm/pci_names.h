/* Names of PCI devices, as the package pci.ids (or hwdata) lists them. */
#ifndef GPU_DRM_PCI_NAMES_H
#define GPU_DRM_PCI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The name that people know the device by: what stands in brackets, where something does
 * ("Navi 31 [Radeon RX 7900 XTX]"). path NULL: the usual places. False: it is not listed. */
bool pci_names_find(const char *path, unsigned vendor, unsigned device, char *out, size_t size);

#endif
