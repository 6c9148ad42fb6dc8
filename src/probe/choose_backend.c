/* Tries the backends in order of how much they report. Called once, when the probe starts. */
#include "probe/choose_backend.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/sysfs.h"
#include "probe/joined_backend.h"

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

/* A divided GPU may have no instances yet. */
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

/* Cards of other makers beside NVIDIA's. */
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
    return joined_backend_make(first, *state, drm_state, machine, others, state);
}

#define ADVICE                                                                                 \
    "Install or repair the NVIDIA driver or that of AMD or Intel, or use simulated GPUs "      \
    "(--sim 2; drop-in commands: BERTH_SIM=2)"

/* Why there is no backend, and what would help. A machine without any driver is told so
 * briefly: it is what many people see first. */
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

static const struct backend *
choose_auto(const struct backend_config *config, void **state, struct backend_machine *machine,
            struct err *e)
{
    struct err nvml, smi = {0}, drm;

    memset(machine, 0, sizeof *machine); /* of an earlier look */
    if (try_backend(&backend_nvml, config, state, machine, &nvml) == 0) {
        const struct backend *b = add_drm(&backend_nvml, config, state, machine);
        if (need_cards(b, state, machine, &nvml) == 0)
            return b;
    }
    /* nvidia-smi lists a divided GPU without instances as if it were whole. */
    if (machine->n_mig_gpus > 0)
        err_set(&smi, ERR_FAILED, "not asked: it does not tell divided GPUs from whole ones");
    else if (try_backend(&backend_smi, config, state, machine, &smi) == 0)
        return add_drm(&backend_smi, config, state, machine);
    if (try_backend(&backend_drm, config, state, machine, &drm) == 0)
        return &backend_drm;
    say_none(config, &nvml, &smi, &drm, machine, e);
    return NULL;
}

/* Where a card has a NUMA node, the CPUs of the nodes; simulated ones are known already. */
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
