/* Tries the backends in order of how much they report. Called once, when the probe starts. */
#include "probe/choose_backend.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/sysfs.h"

static const struct backend *const backends[] = {&backend_nvml, &backend_smi, &backend_drm,
                                                 &backend_sim};

const struct backend *
backend_named(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(name, backends[i]->name) == 0)
            return backends[i];
    return NULL;
}

static int
try_backend(const struct backend *b, const struct backend_config *config, void **state,
            struct backend_machine *machine, struct err *e)
{
    *state = NULL;
    if (b->open(config, state, e) == 0 && b->discover(*state, machine, e) == 0)
        return 0;
    b->close(*state);
    *state = NULL;
    return -1;
}

/* A GPU with MIG enabled may have no instances yet. */
static int
need_cards(const struct backend *b, void **state, const struct backend_machine *machine,
           struct err *e)
{
    if (machine->n > 0)
        return 0;
    b->close(*state);
    *state = NULL;
    return err_set(e, ERR_FAILED, "%s",
                   machine->n_left_out > 0 ? machine->left_out[0] : "there is no GPU");
}

/* --- NVIDIA's and other GPUs in one machine --- */

/* Two backends combined: the DRM GPUs follow those of the first backend. The first one's keep
 * their positions, so that its links and group requests need no translation. */
struct joined {
    const struct backend *first;
    void *first_state, *drm_state;
    int n_first, n_drm;
    struct backend_sample drm; /* its sample, swapped list by list with the whole one */
};

static int
joined_sample(void *state, struct backend_sample *out, struct err *e)
{
    struct joined *j = state;

    if (j->first->sample(j->first_state, out, e) < 0 ||
        backend_drm.sample(j->drm_state, &j->drm, e) < 0)
        return -1;
    for (int i = 0; i < j->n_drm; i++) {
        struct backend_usage mine = out->use[j->n_first + i];
        out->use[j->n_first + i] = j->drm.use[i];
        j->drm.use[i] = mine;
    }
    return 0;
}

static bool
joined_has_changed(void *state)
{
    const struct joined *j = state;

    return (j->first->has_changed && j->first->has_changed(j->first_state)) ||
           backend_drm.has_changed(j->drm_state);
}

static void
joined_close(void *state)
{
    struct joined *j = state;

    j->first->close(j->first_state);
    backend_drm.close(j->drm_state);
    backend_sample_free(&j->drm);
    free(j);
}

static void
joined_group_use(void *state, struct backend_group *g)
{
    const struct joined *j = state;

    if (g->card < j->n_first && j->first->group_use)
        j->first->group_use(j->first_state, g);
}

static const struct backend nvml_and_drm = {.name = "nvml+drm",
                                            .sample = joined_sample,
                                            .has_changed = joined_has_changed,
                                            .close = joined_close,
                                            .group_use = joined_group_use};
static const struct backend smi_and_drm = {.name = "nvidia-smi+drm",
                                           .sample = joined_sample,
                                           .has_changed = joined_has_changed,
                                           .close = joined_close,
                                           .group_use = joined_group_use};

/* Adds the DRM backend's GPUs to the machine. Takes over both states; *state is set to the
 * combined one. `first` is nvml or nvidia-smi. */
static const struct backend *
join(const struct backend *first, void *first_state, void *drm_state,
     struct backend_machine *machine, const struct backend_machine *drm, void **state)
{
    struct joined *j = xcalloc(1, sizeof *j);
    auto_free char *driver =
        xasprintf("%s%s%s", machine->driver, machine->driver[0] ? ", " : "", drm->driver);

    *j = (struct joined){.first = first,
                         .first_state = first_state,
                         .drm_state = drm_state,
                         .n_first = machine->n};
    for (int i = 0; i < drm->n; i++) {
        if (machine->n == GPU_MAX) {
            backend_machine_leave_out(machine, "%s is left out: there are more than %d GPUs",
                                      drm->cards[i].bus_id, GPU_MAX);
            continue;
        }
        struct backend_card *card = &machine->cards[machine->n];
        *card = drm->cards[i];
        card->index = machine->n++;
    }
    j->n_drm = machine->n - j->n_first;
    for (int i = 0; i < drm->n_left_out; i++)
        backend_machine_leave_out(machine, "%s", drm->left_out[i]);
    snprintf(machine->driver, sizeof machine->driver, "%s", driver);
    *state = j;
    return first == &backend_nvml ? &nvml_and_drm : &smi_and_drm;
}

/* Adds GPUs of other vendors to NVIDIA's. */
static const struct backend *
add_drm(const struct backend *first, const struct backend_config *config, void **state,
        struct backend_machine *machine)
{
    auto_free struct backend_machine *others = xcalloc(1, sizeof *others);
    void *drm_state;
    struct err none;

    if (try_backend(&backend_drm, config, &drm_state, others, &none) < 0) {
        for (int i = 0; i < others->n_left_out; i++)
            backend_machine_leave_out(machine, "%s", others->left_out[i]);
        return first;
    }
    return join(first, *state, drm_state, machine, others, state);
}

/* --- the choice --- */

#define ADVICE                                                                                 \
    "Install or repair the NVIDIA driver or that of AMD or Intel, or use simulated GPUs "      \
    "(--sim 2; drop-in commands: BERTH_SIM=2)"

/* Explains why there is no backend, and what would help; briefly for a machine without any
 * driver, because that is what many people see first. */
static void
say_none(const struct backend_config *config, const struct err *nvml, const struct err *smi,
         const struct err *drm, const struct backend_machine *machine, struct err *e)
{
    if (!config->nvml_path && nvml->errnum == ENOENT && !config->smi_path &&
        smi->errnum == ENOENT && machine->n_left_out == 0)
        err_set(e, ERR_FAILED,
                "neither NVML (libnvidia-ml.so.1) nor nvidia-smi is installed, and no GPU uses "
                "amdgpu, xe or i915. " ADVICE);
    else
        err_set(e, ERR_FAILED, "nvml: %.260s; nvidia-smi: %.260s; drm: %.260s. " ADVICE,
                nvml->text, smi->text, drm->text);
}

/* NVIDIA's driver is loaded but its library does not work with it, as after an upgrade: its
 * GPUs still exist, and are reported although other GPUs were found. */
static void
note_nvidia(const struct backend_config *config, const struct err *nvml,
            struct backend_machine *machine)
{
    char version[64];

    sysfs_driver_version(config->proc_root, version, sizeof version);
    if (nvml->errnum != ENOENT && version[0])
        backend_machine_add_unanswered(machine, "", false, "NVIDIA's GPUs are left out: %s",
                                       nvml->text);
}

static const struct backend *
choose_auto(const struct backend_config *config, void **state, struct backend_machine *machine,
            struct err *e)
{
    struct err nvml, smi = {0}, drm;

    memset(machine, 0, sizeof *machine); /* from an earlier attempt */
    if (try_backend(&backend_nvml, config, state, machine, &nvml) == 0) {
        const struct backend *b = add_drm(&backend_nvml, config, state, machine);
        if (need_cards(b, state, machine, &nvml) == 0)
            return b;
    }
    /* nvidia-smi lists a MIG-enabled GPU without instances as an undivided one. */
    if (machine->n_mig_gpus > 0)
        err_set(&smi, ERR_FAILED, "not asked: it does not tell divided GPUs from whole ones");
    else if (try_backend(&backend_smi, config, state, machine, &smi) == 0)
        return add_drm(&backend_smi, config, state, machine);
    if (try_backend(&backend_drm, config, state, machine, &drm) == 0) {
        note_nvidia(config, &nvml, machine);
        return &backend_drm;
    }
    say_none(config, &nvml, &smi, &drm, machine, e);
    return NULL;
}

/* If a GPU has a NUMA node, finds the CPUs of the nodes; those of simulated GPUs are already
 * known. */
static const struct backend *
with_nodes(const struct backend *b, const struct backend_config *config,
           struct backend_machine *machine)
{
    bool has_node = false;

    for (int i = 0; b && i < machine->n; i++)
        has_node |= (machine->cards[i].valid & CARD_HAS_NUMA) != 0;
    if (has_node && machine->n_nodes == 0)
        sysfs_find_nodes(config->sys_root, machine);
    return b;
}

const struct backend *
choose_backend(const char *name, const struct backend_config *config, void **state,
               struct backend_machine *machine, struct err *e)
{
    if (strcmp(name, "auto") == 0)
        return with_nodes(choose_auto(config, state, machine, e), config, machine);
    const struct backend *b = backend_named(name);
    if (b &&
        (try_backend(b, config, state, machine, e) < 0 || need_cards(b, state, machine, e) < 0))
        return NULL;
    if (b)
        return with_nodes(b, config, machine);
    err_set(e, ERR_USAGE, "unknown backend '%.40s'; use auto, nvml, nvidia-smi, drm or sim",
            name);
    return NULL;
}
