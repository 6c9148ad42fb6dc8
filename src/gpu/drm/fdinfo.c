/* See fdinfo.h. Lines are "key:<blanks>value[ unit]"; drivers add keys of their own and older
 * kernels lack some, so unknown keys are ignored. Called by drm_clients.c. */
#include "gpu/drm/fdinfo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/sysfs.h"

#define REGIONS_MAX 8
#define KIB_MAX     (INT64_C(1) << 40) /* 1 PiB: no GPU has more */

/* One memory region, with the value of the best key so far. */
struct region {
    char name[FDINFO_NAME_MAX];
    int rank;
    int64_t kib;
};

struct regions {
    int n;
    struct region list[REGIONS_MAX];
};

/* The text after the prefix; NULL: key does not start with it. */
static const char *
after(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(key, prefix, n) == 0 ? key + n : NULL;
}

static bool
read_count(const char *value, uint64_t *out, const char **unit)
{
    char *end;

    if (!isdigit((unsigned char)value[0]))
        return false;
    *out = strtoull(value, &end, 10);
    *unit = end + strspn(end, " \t");
    return true;
}

/* Without a unit the value is in bytes. */
static bool
read_kib(const char *value, int64_t *out)
{
    const char *unit;
    uint64_t n;

    if (!read_count(value, &n, &unit) || n > (uint64_t)KIB_MAX * 1024)
        return false;
    if (!unit[0])
        *out = (int64_t)((n + 1023) / 1024);
    else if (strcmp(unit, "KiB") == 0)
        *out = (int64_t)n;
    else if (strcmp(unit, "MiB") == 0)
        *out = (int64_t)n * 1024;
    else if (strcmp(unit, "GiB") == 0)
        *out = (int64_t)n * 1024 * 1024;
    else
        return false;
    return *out <= KIB_MAX;
}

/* Memory of the GPU: amdgpu "vram", xe "vram0", i915 "local0". Other regions are the
 * host's. */
static bool
is_vram(const char *region)
{
    return after(region, "vram") || after(region, "local");
}

/* Of several keys for a region, prefers the one for memory now on the GPU: "total" includes
 * what was moved out, and "memory" is amdgpu's key in kernels before 6.13. */
static void
take_memory(const char *region, int rank, const char *value, struct regions *all)
{
    int64_t kib;
    int i = 0;

    if (!is_vram(region) || strlen(region) >= FDINFO_NAME_MAX || !read_kib(value, &kib))
        return;
    while (i < all->n && strcmp(all->list[i].name, region) != 0)
        i++;
    if (i == REGIONS_MAX)
        return;
    if (i == all->n) {
        all->list[all->n++] = (struct region){.rank = 0};
        snprintf(all->list[i].name, sizeof all->list[i].name, "%s", region);
    }
    if (rank > all->list[i].rank) {
        all->list[i].rank = rank;
        all->list[i].kib = kib;
    }
}

static struct fdinfo_engine *
engine_named(struct fdinfo *out, const char *name)
{
    for (int i = 0; i < out->n_engines; i++) {
        if (strcmp(out->engines[i].name, name) == 0)
            return &out->engines[i];
    }
    if (out->n_engines == FDINFO_ENGINES_MAX || strlen(name) >= FDINFO_NAME_MAX)
        return NULL;
    struct fdinfo_engine *e = &out->engines[out->n_engines++];
    *e = (struct fdinfo_engine){.capacity = 1};
    snprintf(e->name, sizeof e->name, "%s", name);
    return e;
}

/* "drm-engine-capacity-" also begins with "drm-engine-", so it is checked first. */
static void
take_engine(const char *key, const char *value, struct fdinfo *out)
{
    const char *capacity = after(key, "drm-engine-capacity-");
    const char *total = after(key, "drm-total-cycles-");
    const char *cycles = after(key, "drm-cycles-");
    const char *ns = after(key, "drm-engine-");
    const char *name = capacity ? capacity : total ? total : cycles ? cycles : ns;
    const char *unit;
    uint64_t n;

    if (!name || !read_count(value, &n, &unit))
        return;
    struct fdinfo_engine *e = engine_named(out, name);
    if (!e)
        return;
    if (capacity)
        e->capacity = n > 0 && n < 1024 ? (uint32_t)n : 1;
    else if (total)
        e->total = n;
    else
        e->busy = n;
}

static void
take_pair(const char *key, const char *value, struct fdinfo *out, struct regions *regions)
{
    static const struct {
        const char *prefix;
        int rank;
    } memory[] = {{"drm-resident-", 3}, {"drm-memory-", 2}, {"drm-total-", 1}};
    const char *unit;

    if (strcmp(key, "drm-driver") == 0)
        snprintf(out->driver, sizeof out->driver, "%s", value);
    else if (strcmp(key, "drm-pdev") == 0 &&
             sysfs_bus_id(value, out->bus_id, sizeof out->bus_id) < 0)
        out->bus_id[0] = '\0';
    else if (strcmp(key, "drm-client-id") == 0)
        out->has_client = read_count(value, &out->client, &unit);
    take_engine(key, value, out);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        const char *region = after(key, memory[i].prefix);
        if (region)
            take_memory(region, memory[i].rank, value, regions);
    }
}

int
fdinfo_parse(const char *text, struct fdinfo *out)
{
    auto_free char *copy = xstrdup(text);
    struct regions regions = {.n = 0};
    char *rest = copy, *line;

    *out = (struct fdinfo){.vram_kib = -1};
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ':');
        if (!value || strncmp(line, "drm-", 4) != 0)
            continue;
        *value++ = '\0';
        value += strspn(value, " \t");
        for (size_t n = strlen(value); n > 0 && isspace((unsigned char)value[n - 1]); n--)
            value[n - 1] = '\0';
        take_pair(line, value, out, &regions);
    }
    for (int i = 0; i < regions.n; i++)
        out->vram_kib = (out->vram_kib < 0 ? 0 : out->vram_kib) + regions.list[i].kib;
    return out->driver[0] ? 0 : -1;
}
