/* See pci_names.h. Lines of the list: "1002 Vendor", below it "\t744c Device", below that
 * "\t\t.... ...." for boards. Called once for each GPU that reports no name. */
#include "gpu/drm/pci_names.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"

#define LIST_MAX_BYTES (16U << 20)

static bool
copy_name(const char *name, size_t n, char *out, size_t size)
{
    const char *open = memchr(name, '[', n);
    const char *close = open ? memchr(open, ']', n - (size_t)(open - name)) : NULL;

    if (close && close > open + 1) {
        name = open + 1;
        n = (size_t)(close - name);
    }
    snprintf(out, size, "%.*s", (int)n, name);
    return out[0] != '\0';
}

static bool
find_in(const char *text, unsigned vendor, unsigned device, char *out, size_t size)
{
    char head[16], row[16];
    bool inside = false;

    snprintf(head, sizeof head, "%04x  ", vendor);
    snprintf(row, sizeof row, "\t%04x  ", device);
    for (const char *line = text; line[0]; line += line[0] == '\n') {
        size_t n = strcspn(line, "\n");
        if (line[0] != '\t' && line[0] != '#' && n > 0)
            inside = strncmp(line, head, strlen(head)) == 0;
        else if (inside && strncmp(line, row, strlen(row)) == 0)
            return copy_name(line + strlen(row), n - strlen(row), out, size);
        line += n;
    }
    return false;
}

bool
pci_names_find(const char *path, unsigned vendor, unsigned device, char *out, size_t size)
{
    static const char *const usual[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
    auto_buf struct buf text = BUF_INIT;
    int rc = -1;

    if (path)
        rc = file_read(path, LIST_MAX_BYTES, &text, NULL);
    for (size_t i = 0; !path && rc < 0 && i < sizeof usual / sizeof usual[0]; i++)
        rc = file_read(usual[i], LIST_MAX_BYTES, &text, NULL);
    return rc == 0 && find_in(buf_str(&text), vendor, device, out, size);
}
