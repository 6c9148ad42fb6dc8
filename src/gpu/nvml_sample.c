/* The sampling part of the NVML backend: how much of a card is in use, and by which process.
 * Called for every card at every sample. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "gpu/nvml.h"

#define MIB (UINT64_C(1) << 20)

/* More processes than any machine has on one GPU; a larger answer is invalid. */
#define PROCESSES_MAX 65536

#define UNTOUCHED   0xa5 /* fill byte; no record ends in it: that would be an exabyte */
#define LONG_RECORD 32   /* in drivers 535 before 535.98 */

#define INSTANCE_MAX 63 /* largest plausible number of a GPU or compute instance */

static int64_t
mib_up(uint64_t bytes)
{
    return (int64_t)(bytes / MIB + (bytes % MIB != 0));
}

/* The first version counts the driver's reserve as used, the second reports it separately. As
 * programs can never use it, it is subtracted from the total if it is reported. */
int
nvml_read_memory(const struct nvml_api *api, nvml_device device, struct nvml_reading *out)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct nvml_memory v1;

    if (api->memory_v2 && api->memory_v2(device, &v2) == NVML_OK && v2.total >= v2.reserved) {
        out->total_mib = (int64_t)((v2.total - v2.reserved) / MIB);
        out->used_mib = mib_up(v2.used);
        return NVML_OK;
    }
    int status = api->memory(device, &v1);
    if (status == NVML_OK) {
        out->total_mib = (int64_t)(v1.total / MIB);
        out->used_mib = mib_up(v1.used);
    }
    return status;
}

bool
nvml_card_is_lost(int status)
{
    return status == NVML_GPU_IS_LOST || status == NVML_RESET_REQUIRED ||
           status == NVML_GPU_NOT_FOUND;
}

static bool
nvml_is_broken(int status)
{
    return status == NVML_UNINITIALIZED || status == NVML_DRIVER_NOT_LOADED ||
           status == NVML_VERSION_MISMATCH;
}

/* True if the status is neither an answer nor a reason why there is none. */
static bool
has_failed(int status)
{
    return status != NVML_OK && status != NVML_NOT_SUPPORTED && status != NVML_NO_PERMISSION &&
           status != NVML_FUNCTION_NOT_FOUND && status != NVML_INSUFFICIENT_SIZE;
}

/* Calls one function until the buffer suffices; processes start and end between calls. */
static int
call_list(struct nvml *nvml, nvml_processes_fn list, nvml_device device, uint32_t *count)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        if (nvml->cap_processes == 0 || *count > nvml->cap_processes) {
            /* Twice the size: some drivers of the 535 series write longer records. */
            nvml->cap_processes = *count + 64;
            nvml->processes = xrealloc(nvml->processes,
                                       nvml->cap_processes * 2 * sizeof(struct nvml_process));
        }
        *count = nvml->cap_processes;
        memset(nvml->processes, UNTOUCHED,
               nvml->cap_processes * 2 * sizeof(struct nvml_process));
        int status = list(device, count, nvml->processes);
        if (status != NVML_INSUFFICIENT_SIZE)
            return status;
        if (*count > PROCESSES_MAX)
            return NVML_NOT_SUPPORTED;
        if (*count <= nvml->cap_processes)
            *count = nvml->cap_processes + 1;
    }
    return NVML_INSUFFICIENT_SIZE;
}

/* True if a record is of another instance than the card. Short records do not tell. */
static bool
is_of_another(const struct nvml_instance *card, const struct nvml_process *p)
{
    return card->gpu && p->instances[0] <= INSTANCE_MAX && p->instances[1] <= INSTANCE_MAX &&
           (p->instances[0] != card->gi || p->instances[1] != card->ci);
}

/* The length of the records in nvml->processes after a call. Long records can only be detected
 * by data beyond where short ones would end. */
static size_t
record_size(const struct nvml *nvml, uint32_t count)
{
    const unsigned char *bytes = (const unsigned char *)nvml->processes;

    for (size_t i = count * sizeof(struct nvml_process); i < (size_t)count * LONG_RECORD; i++)
        if (bytes[i] != UNTOUCHED)
            return LONG_RECORD;
    return sizeof(struct nvml_process);
}

/* Adds the records in nvml->processes after a call. */
static void
add_records(const struct nvml *nvml, int card, enum nvml_process_kind kind, uint32_t count,
            size_t stride, struct backend_usage *u)
{
    for (uint32_t i = 0; i < count; i++) {
        struct nvml_process p = {.instances = {UINT32_MAX, UINT32_MAX}};
        memcpy(&p, (const char *)nvml->processes + i * stride,
               stride < sizeof p ? stride : sizeof p);
        if (p.pid == 0 || p.pid > INT32_MAX || is_of_another(&nvml->instances[card], &p))
            continue;
        int64_t mib = p.used_bytes == UINT64_MAX ? -1 : mib_up(p.used_bytes);
        if (kind == NVML_GRAPHICS)
            backend_usage_add_drawing(u, (int32_t)p.pid, mib);
        else
            backend_usage_add(u, (int32_t)p.pid, mib);
    }
}

/* Reads one kind of process with the newest function that works. */
static int
read_list(struct nvml *nvml, int card, enum nvml_process_kind kind, struct backend_usage *u)
{
    int status = NVML_FUNCTION_NOT_FOUND;

    for (int version = 0; version < NVML_PROCESS_VERSIONS; version++) {
        nvml_processes_fn list = nvml->api.processes[kind][version];
        bool is_oldest = version == NVML_PROCESS_VERSIONS - 1;
        uint32_t count = 0;
        if (!list)
            continue;
        status = call_list(nvml, list, nvml->devices[card], &count);
        if (status == NVML_OK)
            add_records(nvml, card, kind, count,
                        is_oldest ? NVML_PROCESS_V1_SIZE : record_size(nvml, count), u);
        if (status != NVML_FUNCTION_NOT_FOUND)
            break;
    }
    return status;
}

/* The list counts as known if compute processes were reported; the other kinds are extras that
 * many GPUs and libraries lack. */
static int
read_processes(struct nvml *nvml, int card, struct backend_usage *u)
{
    int status = read_list(nvml, card, NVML_COMPUTE, u);

    if (status == NVML_OK)
        u->valid |= CARD_HAS_PROCS;
    read_list(nvml, card, NVML_GRAPHICS, u);
    read_list(nvml, card, NVML_MPS, u);
    return status;
}

/* An instance has its GPU's temperature; its load is not available. */
static int
read_load(const struct nvml *nvml, int card, struct backend_usage *u)
{
    const struct nvml_api *api = &nvml->api;
    nvml_device gpu = nvml->instances[card].gpu;
    nvml_device device = gpu ? gpu : nvml->devices[card];
    struct nvml_utilization load;
    uint32_t celsius;
    int status =
        api->utilization && !gpu ? api->utilization(device, &load) : NVML_NOT_SUPPORTED;

    if (status == NVML_OK) {
        u->util = (int32_t)load.gpu;
        u->valid |= CARD_HAS_UTIL;
    }
    if (api->temperature && api->temperature(device, 0, &celsius) == NVML_OK) {
        u->temperature_c = (int32_t)celsius;
        u->valid |= CARD_HAS_TEMPERATURE;
    }
    return status;
}

/* The energy of a divided GPU cannot be attributed to one instance. */
static void
read_energy(const struct nvml *nvml, int card, struct backend_usage *u)
{
    unsigned long long mj;

    if (nvml->instances[card].gpu || !nvml->api.energy ||
        nvml->api.energy(nvml->devices[card], &mj) != NVML_OK || mj > INT64_MAX)
        return;
    u->energy_mj = (int64_t)mj;
    u->valid |= CARD_HAS_ENERGY;
}

void
nvml_read_health(const struct nvml_api *api, nvml_device device, struct backend_usage *u)
{
    uint32_t ignored, pending = 0, failed = 0, pages = 0;
    bool rows = api->remapped_rows &&
                api->remapped_rows(device, &ignored, &ignored, &pending, &failed) == NVML_OK;
    bool retired = api->retired_pending && api->retired_pending(device, &pages) == NVML_OK;

    if (!rows && !retired)
        return;
    u->valid |= CARD_HAS_HEALTH;
    u->health = rows && failed                                 ? CARD_MEMORY_FAILED
                : (rows && pending) || (retired && pages == 1) ? CARD_MEMORY_PENDING
                                                               : CARD_MEMORY_FINE;
}

/* For a memory shared with other instances, counts only what this one's processes use. */
static void
sum_processes(struct backend_usage *u)
{
    int64_t sum = 0;

    u->valid &= ~(uint32_t)CARD_HAS_USED;
    if (!(u->valid & CARD_HAS_PROCS))
        return;
    for (int i = 0; i < u->n_procs; i++) {
        if (u->procs[i].mib < 0)
            return;
        sum += u->procs[i].mib;
    }
    u->used_mib = sum;
    u->valid |= CARD_HAS_USED;
}

int
nvml_read_usage(struct nvml *nvml, int card, struct backend_usage *u)
{
    struct nvml_reading memory;
    int status = nvml_read_memory(&nvml->api, nvml->devices[card], &memory);
    bool fails = has_failed(status);

    if (status == NVML_OK) {
        u->used_mib = memory.used_mib;
        u->valid |= CARD_HAS_USED;
    }
    if (!nvml_card_is_lost(status) && !nvml_is_broken(status))
        status = read_processes(nvml, card, u);
    fails = fails && has_failed(status); /* on a working card one of the two is known */
    if (!nvml_card_is_lost(status) && !nvml_is_broken(status))
        status = read_load(nvml, card, u);
    if (nvml_is_broken(status))
        return status;
    if (!nvml_card_is_lost(status))
        read_energy(nvml, card, u);
    if (nvml->instances[card].shares_memory)
        sum_processes(u);
    u->present = !nvml_card_is_lost(status);
    u->is_unreadable = u->present && fails;
    return NVML_OK;
}
