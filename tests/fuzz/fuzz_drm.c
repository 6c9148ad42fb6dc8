/* The kernel's text about AMD and Intel GPUs and their memory limits: a process's fdinfo up to
 * a NUL byte, then a device's properties, then a node's CPUs, then an address. Any bytes must
 * give what the headers promise, or nothing. */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cpu_list.h"
#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/drm/drm.h"
#include "gpu/drm/fdinfo.h"
#include "gpu/sysfs.h"

#define KIB_MAX (INT64_C(8) << 40) /* of all regions together */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool good, const char *what)
{
    if (!good)
        err_abort("%s", what);
}

static void
check_fdinfo(const char *text)
{
    struct fdinfo info;
    char again[CARD_BUS_MAX];

    bool is_client = fdinfo_parse(text, &info) == 0;
    require(is_client == (info.driver[0] != '\0'), "a client of no driver");
    require(info.vram_kib >= -1 && info.vram_kib <= KIB_MAX, "no such amount of memory");
    require(info.n_engines >= 0 && info.n_engines <= FDINFO_ENGINES_MAX, "too many engines");
    for (int i = 0; i < info.n_engines; i++) {
        const struct fdinfo_engine *e = &info.engines[i];
        require(e->capacity >= 1 && e->capacity < 1024, "no such class of engines");
        require(strnlen(e->name, sizeof e->name) < sizeof e->name, "a name without end");
    }
    if (info.bus_id[0])
        require(sysfs_bus_id(info.bus_id, again, sizeof again) == 0 &&
                    strcmp(again, info.bus_id) == 0,
                "an address that is none");
}

static void
check_properties(const char *text)
{
    static const char *const keys[] = {"PCI_ID", "location_id", "simd_count", ""};
    char value[32];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        for (const char *between = "= "; *between; between++)
            if (drm_find_value(text, keys[i], *between, value, sizeof value))
                require(strlen(value) < sizeof value && !strchr(value, '\n'), "a value's end");
    }
}

/* The parsed list, written again, must read as the same CPUs. */
static void
check_cpus(const char *text)
{
    cpu_set_t cpus, again;
    struct buf list = BUF_INIT;

    if (!cpu_list_read(text, &cpus))
        return;
    cpu_list_add(&cpus, &list);
    if (CPU_COUNT(&cpus) > 0)
        require(cpu_list_read(buf_str(&list), &again) && CPU_EQUAL(&cpus, &again),
                "a list of other CPUs");
    buf_free(&list);
}

static void
check_address(const char *text)
{
    char id[CARD_BUS_MAX];

    if (sysfs_bus_id(text, id, sizeof id) == 0)
        require(strlen(id) >= 12, "a short address");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(const char *) = {check_fdinfo, check_properties, check_cpus,
                                                   check_address};
    char *text = malloc(size + 1), *part = text;

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && part <= text + size; i++) {
        checks[i](part);
        part += strlen(part) + 1;
    }
    free(text);
    return 0;
}
