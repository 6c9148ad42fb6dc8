/* NVML's accounting mode: the driver records the peak memory of each process, even after its
 * end, so that no peak is missed between two samples. It is turned on if it is off and this is
 * permitted (root; it lasts until the driver is unloaded). Called by the NVML backend for
 * every GPU at every sample.
 *
 * The driver lists a few thousand ended processes and forgets the oldest. Each is reported
 * once; those that had ended before this probe started are never reported. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "gpu/nvml.h"

#define MIB      (UINT64_C(1) << 20)
#define PIDS_MAX 16384 /* the driver's own maximum is 4000 */

void
nvml_account_start(const struct nvml_api *api, nvml_device device, struct nvml_account *a)
{
    uint32_t mode = 0;

    if (!api->accounting_mode || !api->accounting_pids || !api->accounting_stats ||
        api->accounting_mode(device, &mode) != NVML_OK)
        return;
    if (!mode && api->set_accounting_mode)
        mode = api->set_accounting_mode(device, 1) == NVML_OK;
    a->is_on = mode != 0;
}

void
nvml_account_end(struct nvml_account *a)
{
    free(a->ended);
    memset(a, 0, sizeof *a);
}

static int
compare_pids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static bool
has_been_told(const struct nvml_account *a, uint32_t pid)
{
    return a->n_ended > 0 &&
           bsearch(&pid, a->ended, a->n_ended, sizeof pid, compare_pids) != NULL;
}

static struct backend_proc *
find_process(struct backend_usage *u, uint32_t pid)
{
    for (int i = 0; i < u->n_procs; i++) {
        if (u->procs[i].pid == (int32_t)pid)
            return &u->procs[i];
    }
    return NULL;
}

/* Handles one process of the driver's list. True if it has ended. */
static bool
read_process(const struct nvml_api *api, nvml_device device, const struct nvml_account *a,
             uint32_t pid, struct backend_usage *u)
{
    struct nvml_accounting_stats stats = {.running = 1};
    struct backend_proc *running = find_process(u, pid);

    if (!running && has_been_told(a, pid))
        return true;
    if (api->accounting_stats(device, pid, &stats) != NVML_OK ||
        stats.max_memory_bytes == UINT64_MAX)
        return false;
    int64_t peak_mib =
        (int64_t)(stats.max_memory_bytes / MIB + (stats.max_memory_bytes % MIB != 0));
    if (running)
        running->peak_mib = peak_mib;
    else if (!stats.running && a->has_begun)
        backend_usage_add_ended(u, (int32_t)pid, peak_mib);
    return !running && !stats.running;
}

/* All pids in the driver's list; NULL if they are not available. The caller frees it. */
static uint32_t *
list_pids(const struct nvml_api *api, nvml_device device, uint32_t *n)
{
    uint32_t room = 256;

    for (;;) {
        uint32_t *pids = xmalloc(room * sizeof *pids);
        *n = room;
        int status = api->accounting_pids(device, n, pids);
        if (status == NVML_OK && *n <= room)
            return pids;
        free(pids);
        if (status != NVML_INSUFFICIENT_SIZE || room >= PIDS_MAX)
            return NULL;
        room = *n > room && *n <= PIDS_MAX ? *n : room * 2;
    }
}

void
nvml_account_read(const struct nvml_api *api, nvml_device device, struct nvml_account *a,
                  struct backend_usage *u)
{
    uint32_t n, ended = 0;
    uint32_t *pids = a->is_on ? list_pids(api, device, &n) : NULL;

    if (!pids)
        return;
    for (uint32_t i = 0; i < n; i++) {
        if (pids[i] > 0 && pids[i] <= INT32_MAX && read_process(api, device, a, pids[i], u))
            pids[ended++] = pids[i];
    }
    qsort(pids, ended, sizeof *pids, compare_pids);
    free(a->ended);
    a->ended = pids;
    a->n_ended = ended;
    a->has_begun = true;
}
