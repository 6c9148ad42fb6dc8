/* Attributes that jobs on Slurm cannot have: see attr_slurm.h. Dependencies, begin, hold and
 * priority are applied locally, before a job is sent; retries, limits and logs remain
 * Berth's. */
#include "spec/slurm/attr_slurm.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/request.h"

struct gap {
    bool (*is_asked)(const struct request *r);
    const char *name, *why;
};

static bool
asks_ids(const struct request *r)
{
    return r->demand.n_ids > 0;
}

static bool
asks_devices(const struct request *r)
{
    return r->demand.devices != 0;
}

static bool
asks_guard(const struct request *r)
{
    return r->demand.max_used_permille > 0 || r->demand.max_load_permille > 0;
}

static bool
asks_min_vram(const struct request *r)
{
    return r->demand.min_vram_mib > 0;
}

static bool
asks_cc(const struct request *r)
{
    return r->demand.min_cc > 0;
}

static bool
asks_cap(const struct request *r)
{
    return r->demand.vram_cap == VRAM_CAP_REQUIRE;
}

static bool
asks_bind(const struct request *r)
{
    return r->demand.cpu_bind == CPU_BIND_NODE;
}

static bool
asks_terminal(const struct request *r)
{
    return r->pty || r->interactive || r->screen;
}

static bool
asks_preemptible(const struct request *r)
{
    return r->preemptible;
}

static bool
asks_login(const struct request *r)
{
    return r->login;
}

static bool
asks_container(const struct request *r)
{
    return r->container;
}

static const struct gap gaps[] = {
    {asks_ids, "gpu-ids", "Slurm chooses the GPUs; use gpu-type, or gpus"},
    {asks_devices, "devices", "Slurm chooses the GPUs; use gpu-type, or gpus"},
    {asks_guard, "max-used and max-load", "Slurm does not measure GPUs; omit them"},
    {asks_min_vram, "min-vram", "Slurm does not know a GPU's size; use gpu-type"},
    {asks_cc, "gpu-cc", "Slurm does not know a GPU's compute capability; use gpu-type"},
    {asks_cap, "vram-cap=require", "nothing enforces VRAM there; omit it"},
    {asks_bind, "cpu-bind=node", "Slurm binds jobs as its own settings say; omit it"},
    {asks_terminal, "pty, interactive and screen", "its jobs have no terminal here; use srun"},
    {asks_preemptible, "preemptible", "Slurm has its own preemption; choose a QOS for it"},
    {asks_login, "login", "the environment of the login is not known; use env-setup"},
    {asks_container, "container", "start the cluster's own runtime in the command"},
};

int
slurm_check(const struct request *r, struct err *e)
{
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
        if (gaps[i].is_asked(r))
            return err_set(e, ERR_USAGE, "%s cannot be had on Slurm: %s", gaps[i].name,
                           gaps[i].why);
    return 0;
}
