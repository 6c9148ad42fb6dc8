/* Tries the backends in order of how much they report. Called once, when the probe starts. */
#include "probe/choose_backend.h"

#include <stddef.h>
#include <string.h>

#include "base/err.h"

static const struct backend *const backends[] = {&backend_nvml, &backend_smi, &backend_sim};

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

static const struct backend *
choose_auto(const struct backend_config *config, void **state, struct backend_machine *machine,
            struct err *e)
{
    struct err nvml, smi;

    if (try_backend(&backend_nvml, config, state, machine, &nvml) == 0)
        return &backend_nvml;
    if (try_backend(&backend_smi, config, state, machine, &smi) == 0)
        return &backend_smi;
    err_set(e, ERR_FAILED,
            "no GPU can be read. nvml: %.400s. nvidia-smi: %.400s. Install or repair the "
            "NVIDIA driver, or use simulated GPUs: --sim 2 (BERTH_SIM=2 for the commands of "
            "other schedulers)",
            nvml.text, smi.text);
    return NULL;
}

const struct backend *
choose_backend(const char *name, const struct backend_config *config, void **state,
               struct backend_machine *machine, struct err *e)
{
    if (strcmp(name, "auto") == 0)
        return choose_auto(config, state, machine, e);
    const struct backend *b = backend_named(name);
    if (b)
        return try_backend(b, config, state, machine, e) == 0 ? b : NULL;
    err_set(e, ERR_USAGE, "unknown backend '%.40s'; use auto, nvml, nvidia-smi or sim", name);
    return NULL;
}
