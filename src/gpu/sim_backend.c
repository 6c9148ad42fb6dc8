/* The simulated backend: GPUs that exist as a folder (sim_table.h), used by `berth simjob`
 * processes. The folder's file `fault`, read at every sample, makes it misbehave as real
 * drivers do. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/sim_table.h"

static int
sim_open(const struct backend_config *config, void **state, struct err *e)
{
    if (!config->sim_dir)
        return err_set(e, ERR_USAGE, "simulated GPUs need a folder: --sim-dir DIR");
    struct sim_table *t = sim_table_create(config->sim_dir, config->sim_spec, e);
    *state = t;
    return t ? 0 : -1;
}

/* Divides the CPUs that this process may use equally among the simulated nodes; with fewer
 * CPUs than nodes, nodes share one. */
static void
add_nodes(const struct sim_spec *spec, struct backend_machine *out)
{
    cpu_set_t all, part;
    int n = 0;

    for (int i = 0; i < spec->n; i++)
        n = spec->numa[i] >= n ? spec->numa[i] + 1 : n;
    if (n == 0 || sched_getaffinity(0, sizeof all, &all) < 0)
        return;
    int cpus = CPU_COUNT(&all);
    for (int node = 0; node < n; node++) {
        int at = 0;
        CPU_ZERO(&part);
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &all))
                continue;
            if (cpus >= n ? at * n / cpus == node : at == node % cpus)
                CPU_SET(cpu, &part);
            at++;
        }
        backend_machine_add_node(out, node, &part);
    }
}

/* mig_gpu gets a UUID that no card has: programs do not see the GPU. */
static void
fill_instance(const struct sim_table *t, int i, struct backend_machine *m)
{
    const struct sim_spec *spec = sim_table_spec(t);
    const struct sim_profile *profile = spec->profile[i];
    struct backend_card *card = &m->cards[i];
    char first[SIM_UUID_MAX];
    int number = 0;

    while (i - number > 0 && spec->gpu[i - number - 1] == spec->gpu[i])
        number++;
    sim_table_uuid(t, i - number, first);
    snprintf(card->mig_gpu, sizeof card->mig_gpu, "%s-whole", first);
    snprintf(card->name, sizeof card->name, "Simulated GPU MIG %dg.%dgb", profile->slices,
             (card->total_mib + 512) / 1024 > 0 ? (int)((card->total_mib + 512) / 1024) : 1);
    card->mig_gi = number + 1;
    card->mig_gi_cap = card->mig_ci_cap = -1;
    if (number == 0)
        snprintf(m->mig_gpus[m->n_mig_gpus++], CARD_UUID_MAX, "%s-whole", first);
}

static int
sim_discover(void *state, struct backend_machine *out, struct err *e)
{
    const struct sim_spec *spec = sim_table_spec(state);

    (void)e;
    memset(out, 0, sizeof *out);
    snprintf(out->driver, sizeof out->driver, "simulated");
    out->n = spec->n;
    for (int i = 0; i < spec->n; i++) {
        struct backend_card *card = &out->cards[i];
        card->index = i;
        card->total_mib = spec->total_mib[i];
        card->valid = CARD_HAS_COMPUTE_MODE | CARD_HAS_BUS_ID | CARD_HAS_MINOR;
        card->minor = spec->gpu[i];
        snprintf(card->bus_id, sizeof card->bus_id, "0000:%02x:00.0", spec->gpu[i] + 1);
        card->compute_mode = CARD_COMPUTE_DEFAULT;
        snprintf(card->name, sizeof card->name, "Simulated GPU");
        sim_table_uuid(state, i, card->uuid);
        if (spec->numa[i] >= 0) {
            card->numa = spec->numa[i];
            card->valid |= CARD_HAS_NUMA;
        }
        if (spec->cc[i] > 0) {
            card->cc = spec->cc[i];
            card->valid |= CARD_HAS_CC;
        }
        if (spec->capped[i])
            snprintf(card->cap, sizeof card->cap, "sim");
        else
            snprintf(card->cap_why, sizeof card->cap_why, "%s",
                     spec->profile[i]
                         ? "it is a MIG instance"
                         : "simulated GPUs enforce it with +cap only (--sim 2x24G+cap)");
        if (spec->linked[i])
            backend_machine_link(out, i, i + 1);
        if (spec->profile[i])
            fill_instance(state, i, out);
    }
    add_nodes(spec, out);
    return 0;
}

/* Executes faults that take effect at once instead of being reported. */
static int
suffer(const struct sim_faults *faults, struct err *e)
{
    if (faults->die)
        raise(SIGKILL);
    while (faults->hang)
        pause();
    if (faults->error)
        return err_set(e, ERR_FAILED, "simulated GPU error (requested by the file 'fault')");
    return 0;
}

static int
sim_sample(void *state, struct backend_sample *out, struct err *e)
{
    const struct sim_spec *spec = sim_table_spec(state);
    struct sim_faults faults;

    if (sim_table_faults(state, &faults, e) < 0 || suffer(&faults, e) < 0)
        return -1;
    backend_sample_reset(out);
    for (int i = 0; i < spec->n; i++) {
        struct backend_usage *u = &out->use[i];
        u->used_mib = 0;
        u->util = 0;
    }
    if (sim_table_sample(state, out, e) < 0)
        return -1;
    for (int i = 0; i < spec->n; i++) {
        struct backend_usage *u = &out->use[i];
        u->present = !(faults.lost >> i & 1);
        u->is_unreadable = u->present && (faults.unread >> i & 1);
        u->temperature_c = 35 + u->util * 2 / 5; /* 35 idle, 75 at full load */
        u->valid = CARD_HAS_USED | CARD_HAS_UTIL | CARD_HAS_TEMPERATURE;
        u->valid |= CARD_HAS_HEALTH;
        u->health = faults.worn >> i & 1      ? CARD_MEMORY_FAILED
                    : faults.pending >> i & 1 ? CARD_MEMORY_PENDING
                                              : CARD_MEMORY_FINE;
        if (!faults.silent_procs)
            u->valid |= CARD_HAS_PROCS;
    }
    return 0;
}

static void
sim_close(void *state)
{
    sim_table_close(state);
}

static int
sim_cap(void *state, const char *uuid, const char *group, int64_t mib, struct err *e)
{
    const struct sim_spec *spec = sim_table_spec(state);
    struct sim_faults faults;
    char own[SIM_UUID_MAX];

    if (sim_table_faults(state, &faults, e) < 0 || suffer(&faults, e) < 0)
        return -1;
    if (faults.no_caps)
        return err_set(e, ERR_FAILED, "simulated refusal (requested by the file 'fault')");
    for (int i = 0; i < spec->n; i++) {
        sim_table_uuid(state, i, own);
        if (strcmp(own, uuid) == 0)
            return sim_table_cap(state, i, group, mib, e);
    }
    return err_set(e, ERR_FAILED, "there is no simulated GPU %.40s", uuid);
}

static void
sim_group_use(void *state, struct backend_group *g)
{
    g->mib = sim_table_group_mib(state, g->card, g->name);
}

const struct backend backend_sim = {
    .name = "sim",
    .open = sim_open,
    .discover = sim_discover,
    .sample = sim_sample,
    .close = sim_close,
    .cap = sim_cap,
    .group_use = sim_group_use,
};
