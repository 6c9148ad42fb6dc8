/* The kernel's small files about a GPU: see sysfs.h. A missing file is a field that is not
 * reported. */
#include "gpu/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cpu_list.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "gpu/backend.h"

#define NUMA_NODE_MAX 4096
/* A sysfs file is at most one page, which is large on some machines. */
#define LINE_MAX_BYTES 65536

char *
sysfs_read_line(const char *dir, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_buf struct buf text = BUF_INIT;

    if (file_read(path, LINE_MAX_BYTES, &text, NULL) < 0)
        return NULL;
    return xstrndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
}

int64_t
sysfs_read_number(const char *dir, const char *name)
{
    auto_free char *line = sysfs_read_line(dir, name);
    int64_t n;

    return line && parse_int(line, 0, INT64_MAX, &n, NULL) == 0 ? n : -1;
}

/* Reads 1 to max hexadecimal digits followed by the character `behind` ('\0': end of the
 * text). NULL: no match. */
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
    auto_free char *dir =
        xasprintf("%s/bus/pci/devices/%s", root ? root : "/sys", card->bus_id);
    int64_t node = sysfs_read_number(dir, "numa_node");
    if (node < 0 || node > NUMA_NODE_MAX)
        return;
    card->numa = (int32_t)node;
    card->valid |= CARD_HAS_NUMA;
}

static void
add_node(const char *folder, const char *name, struct backend_machine *m)
{
    auto_free char *path = xasprintf("%s/%s/cpulist", folder, name);
    auto_buf struct buf text = BUF_INIT;
    int64_t node;
    cpu_set_t cpus;

    if (strncmp(name, "node", 4) == 0 && parse_int(name + 4, 0, 4096, &node, NULL) == 0 &&
        file_read(path, 65536, &text, NULL) == 0 && cpu_list_read(buf_str(&text), &cpus))
        backend_machine_add_node(m, (int32_t)node, &cpus);
}

void
sysfs_find_nodes(const char *root, struct backend_machine *m)
{
    auto_free char *folder = xasprintf("%s/devices/system/node", root ? root : "/sys");
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        add_node(folder, entry->d_name, m);
    if (dir)
        closedir(dir);
}

/* Finds the first word of line that looks like a version: digits and dots. */
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

/* Reads "DeviceFileMinor: 66" from the lines of the file. */
static int32_t
read_minor(const char *path)
{
    static const char key[] = "DeviceFileMinor:";
    auto_buf struct buf text = BUF_INIT;
    int minor = -1;
    const char *line =
        file_read(path, 4096, &text, NULL) == 0 ? strstr(buf_str(&text), key) : NULL;
    return line && sscanf(line + sizeof key - 1, "%d", &minor) == 1 ? minor : -1;
}

void
sysfs_fill_mig_caps(const char *proc, struct backend_card *card)
{
    card->mig_gi_cap = card->mig_ci_cap = -1;
    if (!(card->valid & CARD_HAS_MINOR))
        return;
    auto_free char *gi = xasprintf("%s/driver/nvidia/capabilities/gpu%d/mig/gi%d",
                                   proc ? proc : "/proc", card->minor, card->mig_gi);
    auto_free char *gi_file = xasprintf("%s/access", gi);
    auto_free char *ci_file = xasprintf("%s/ci%d/access", gi, card->mig_ci);
    card->mig_gi_cap = read_minor(gi_file);
    card->mig_ci_cap = read_minor(ci_file);
}

int32_t
sysfs_mig_major(const char *proc)
{
    auto_free char *path = xasprintf("%s/devices", proc ? proc : "/proc");
    auto_buf struct buf text = BUF_INIT;
    if (file_read(path, 65536, &text, NULL) < 0)
        return 0;
    const char *end = strstr(buf_str(&text), " nvidia-caps\n");
    while (end && end > text.data && end[-1] != '\n')
        end--;
    int major = 0;
    return end && sscanf(end, "%d", &major) == 1 ? major : 0;
}

/* The value of a line "WORD: value" of the text; NULL: it has none. */
static const char *
value_of(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    if (!at)
        return NULL;
    at += strlen(word);
    return at + strspn(at, " \t");
}

/* The driver was told to exclude the GPU (NVreg_ExcludedGpus), or it has no device file here,
 * as in a container that was given other GPUs. */
static bool
is_out_of_reach(const char *dir, const char *name)
{
    auto_free char *path = xasprintf("%s/%s/information", dir, name);
    auto_buf struct buf text = BUF_INIT;

    if (file_read(path, LINE_MAX_BYTES, &text, NULL) < 0)
        return false;
    const char *excluded = value_of(buf_str(&text), "GPU Excluded:");
    const char *minor = value_of(buf_str(&text), "Device Minor:");
    auto_free char *device = xasprintf("/dev/nvidia%d", minor ? atoi(minor) : 0);
    return (excluded && *excluded == 'Y') ||
           (minor && access(device, F_OK) < 0 && errno == ENOENT);
}

static int
compare_bus_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

int
sysfs_nvidia_gpus(const char *proc, char (*out)[CARD_BUS_MAX], int max)
{
    auto_free char *path = xasprintf("%s/driver/nvidia/gpus", proc ? proc : "/proc");
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int n = 0;

    while (dir && n < max && (entry = readdir(dir)))
        if (sysfs_bus_id(entry->d_name, out[n], sizeof out[n]) == 0 &&
            !is_out_of_reach(path, entry->d_name))
            n++;
    if (dir)
        closedir(dir);
    qsort(out, (size_t)n, sizeof *out, compare_bus_ids);
    return n;
}
