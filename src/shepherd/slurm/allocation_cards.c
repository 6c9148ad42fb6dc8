/* The GPUs of an allocation: see allocation_cards.h. Free room is computed by the same ledger
 * and rules as on the daemon's machine, and so is the host: the cores and the memory that
 * Slurm grants. Sizes come from the probe, which numbers GPUs as the driver and so as Slurm
 * does; without them, all GPUs have the size in the settings. Called by allocation.c. */
#include "shepherd/slurm/allocation_cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "shepherd/slurm/measure.h"

/* Variables in which Slurm lists an allocation's GPUs; a command gets its own part of each. */
static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "SLURM_JOB_GPUS"};
#define N_NAMES (sizeof names / sizeof names[0])

static int
count(const char *list)
{
    int n = list && list[0] ? 1 : 0;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

/* The i-th item of a list; its length in *len. */
static const char *
item(const char *list, int i, size_t *len)
{
    while (i-- > 0)
        list += strcspn(list, ",") + 1;
    *len = strcspn(list, ",");
    return list;
}

static int32_t
number_in_env(const char *name)
{
    const char *text = getenv(name);
    struct err e;
    int64_t n;
    return text && parse_int(text, 0, INT32_MAX, &n, &e) == 0 ? (int32_t)n : 0;
}

/* --- finding them --- */

/* The probe's entry for it, by index or name; NULL: none. */
static const struct measured_gpu *
seen_as(const struct measure *m, const char *list, int i)
{
    size_t len;
    const char *at = item(list, i, &len);
    char *end;
    for (int k = 0; k < m->n_gpus; k++)
        if (strlen(m->gpus[k].uuid) == len && strncmp(m->gpus[k].uuid, at, len) == 0)
            return &m->gpus[k];
    long number = strtol(at, &end, 10);
    return end == at + len && len > 0 && number >= 0 && number < m->n_gpus ? &m->gpus[number]
                                                                           : NULL;
}

static void
add_card(struct allocation_cards *c, int i, const struct measured_gpu *gpu, int32_t gpu_mib)
{
    struct gpu_info info = {.index = i, .minor = -1, .numa = -1};
    struct gpu_sample sample = {.used_mib = 0, .util = -1, .temperature_c = -1, .n_procs = -1};
    c->mib[i] = gpu && gpu->total_mib ? gpu->total_mib : gpu_mib;
    info.total_mib = c->mib[i];
    snprintf(info.uuid, sizeof info.uuid, "%d", i);
    if (gpu && gpu->total_mib && gpu->used_mib > 0)
        sample.used_mib = gpu->used_mib;
    (void)ledger_add_card(c->ledger, &info);
    ledger_sample(c->ledger, i, &sample, 1, NULL, NULL);
}

int
allocation_cards_find(struct allocation_cards *c, int wanted, int32_t gpu_mib,
                      const struct measure *m, struct err *e)
{
    const char *list = NULL;
    *c = (struct allocation_cards){.ledger = ledger_new(NULL)};
    for (size_t i = 0; i < N_NAMES && count(list) == 0; i++)
        list = getenv(names[i]);
    c->n = count(list);
    if (c->n < wanted)
        return err_set(e, ERR_FAILED, "Slurm names %d of %d GPUs in its variables", c->n,
                       wanted);
    if (c->n > GPU_MAX)
        c->n = GPU_MAX;
    for (int i = 0; i < c->n; i++)
        add_card(c, i, seen_as(m, list, i), gpu_mib);
    ledger_set_host(c->ledger, number_in_env("SLURM_CPUS_ON_NODE"),
                    number_in_env("SLURM_MEM_PER_NODE"));
    ledger_set_known(c->ledger);
    return 0;
}

void
allocation_cards_free(struct allocation_cards *c)
{
    ledger_free(c->ledger);
}

/* --- room --- */

static void
hold_of(const struct allocation_cards *c, const struct demand *wanted, struct demand *held)
{
    bool all_known = true;
    for (int i = 0; i < c->n; i++)
        all_known &= c->mib[i] > 0;
    *held = *wanted;
    held->gpu_type[0] = '\0'; /* all of them are of that type */
    if (!all_known)
        held->vram_mib = held->share_permille = 0;
}

bool
allocation_cards_place(const struct allocation_cards *c, const struct demand *wanted,
                       struct demand *held, struct placement *out)
{
    hold_of(c, wanted, held);
    return place_job(held, c->ledger, out, NULL);
}

bool
allocation_cards_could(const struct allocation_cards *c, const struct demand *wanted)
{
    struct demand held;
    hold_of(c, wanted, &held);
    return place_feasible(&held, c->ledger, NULL);
}

/* --- a command's variables --- */

static char *
part_of(const char *name, const char *list, const struct placement *p)
{
    struct buf out = BUF_INIT;
    size_t len;
    buf_addf(&out, "%s=", name);
    for (int i = 0; i < p->n; i++) {
        const char *at = item(list, p->gpus[i], &len);
        buf_addf(&out, "%s%.*s", i ? "," : "", (int)len, at);
    }
    buf_addc(&out, '\0');
    return out.data;
}

char **
allocation_cards_vars(const struct placement *p)
{
    char **out = xcalloc(N_NAMES + 1, sizeof *out);
    size_t n = 0;
    for (size_t i = 0; i < N_NAMES; i++) {
        const char *list = getenv(names[i]);
        bool has_all = list && (p->n == 0 || count(list) > p->gpus[p->n - 1]);
        if (has_all)
            out[n++] = part_of(names[i], list, p);
    }
    return out;
}

void
allocation_vars_free(char **vars)
{
    for (char **v = vars; v && *v; v++)
        free(*v);
    free(vars);
}
