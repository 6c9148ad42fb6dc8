/* Names of PCI devices, from the list of the package pci.ids (or hwdata). */
#ifndef GPU_DRM_PCI_NAMES_H
#define GPU_DRM_PCI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The common name of the device: the text in brackets if there is one ("Navi 31 [Radeon RX
 * 7900 XTX]"). path NULL: the usual places. False: not listed. */
bool pci_names_find(const char *path, unsigned vendor, unsigned device, char *out, size_t size);

#endif
