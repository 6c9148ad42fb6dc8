/* Reads a card's NUMA node and the driver's version from the kernel's own files. Used by
 * the NVML and nvidia-smi backends; a missing file is a field not reported. */
#include "gpu/sysfs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "gpu/backend.h"

/* Reads 1 to max hexadecimal digits and the character behind them; where that is '\0', the
 * text ends there. NULL: not so. */
static const char *
read_hex(const char *s, size_t max, char behind, unsigned *out)
{
    size_t n = 0;

    *out = 0;
    for (; isxdigit((unsigned char)s[n]); n++) {
        int digit = isdigit((unsigned char)s[n]) ? s[n] - '0' : (s[n] | 0x20) - 'a' + 10;
        if (n == max)
            return NULL;
        *out = *out << 4 | (unsigned)digit;
    }
    return n > 0 && s[n] == behind ? s + n + 1 : NULL;
}

int
sysfs_bus_id(const char *text, char *out, size_t size)
{
    unsigned domain, bus, device, function;

    if (!(text = read_hex(text, 8, ':', &domain)) || !(text = read_hex(text, 2, ':', &bus)) ||
        !(text = read_hex(text, 2, '.', &device)) || !read_hex(text, 1, '\0', &function))
        return -1;
    int n = snprintf(out, size, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

void
sysfs_fill_numa(const char *root, struct backend_card *card)
{
    if (!(card->valid & CARD_HAS_BUS_ID))
        return;
    auto_free char *path =
        xasprintf("%s/bus/pci/devices/%s/numa_node", root ? root : "/sys", card->bus_id);
    auto_buf struct buf text = BUF_INIT;
    if (file_read(path, 64, &text, NULL) < 0)
        return;
    char *line = text.data ? text.data : (char[]){""};
    line[strcspn(line, "\n")] = '\0';
    int64_t node;
    if (parse_int(line, 0, 4096, &node, NULL) < 0)
        return;
    card->numa = (int32_t)node;
    card->valid |= CARD_HAS_NUMA;
}

/* The first word of line that looks like a version: digits with a dot between them. */
static void
first_version(const char *line, char *out, size_t size)
{
    for (const char *p = line; *p;) {
        size_t n = strcspn(p, " \t\n");
        size_t digits = strspn(p, "0123456789.");
        if (n > 0 && digits == n && isdigit((unsigned char)*p) && memchr(p, '.', n)) {
            snprintf(out, size, "%.*s", (int)n, p);
            return;
        }
        p += n;
        p += strspn(p, " \t\n");
    }
}

void
sysfs_driver_version(const char *proc, char *out, size_t size)
{
    out[0] = '\0';
    auto_free char *path = xasprintf("%s/driver/nvidia/version", proc ? proc : "/proc");
    auto_buf struct buf text = BUF_INIT;
    if (file_read(path, 4096, &text, NULL) == 0)
        first_version(buf_str(&text), out, size);
}
