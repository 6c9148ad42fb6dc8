/* Chooses the program that runs a job's container, and the devices: see job_container.h.
 * shepherd/begin/container_words.c makes the program's arguments. Called by launch_spec.c,
 * job_environ_cards.c, and admit.c for new jobs. */
#include "daemon/attempt/job_container.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/common/instance.h"
#include "sys/container_find.h"

/* The program for this image. The caller frees; NULL: not installed. */
static char *
find_runtime(const struct instance *inst, const char *image, bool *is_apptainer)
{
    int rule = inst->config.container_runtime;
    bool is_file = container_is_image_file(image);
    char *found = rule == RUNTIME_PODMAN || (rule == RUNTIME_AUTO && !is_file)
                      ? container_find_podman()
                      : NULL;
    *is_apptainer = !found && rule != RUNTIME_PODMAN;
    return *is_apptainer ? container_find_apptainer() : found;
}

static int
refuse_unfound(const struct instance *inst, const char *image, struct err *e)
{
    switch ((enum config_container)inst->config.container_runtime) {
    case RUNTIME_PODMAN:
        return err_set(
            e, ERR_REFUSED,
            "podman, which is to run containers (container_runtime), is not installed");
    case RUNTIME_APPTAINER:
        return err_set(e, ERR_REFUSED,
                       "apptainer, which is to run containers (container_runtime), is not "
                       "installed");
    case RUNTIME_AUTO:
        break;
    }
    if (container_is_image_file(image))
        return err_set(e, ERR_REFUSED,
                       "the image '%.80s' needs apptainer, which is not installed", image);
    return err_set(e, ERR_REFUSED,
                   "a job with --container needs podman or apptainer; neither is installed");
}

/* Podman maps user ids with newuidmap, a setuid program; root does not need it. */
static bool
cannot_map_ids(const struct instance *inst, const struct job *job)
{
    return inst->places.system && job->uid != 0 && inst->config.no_new_privs == NO_NEW_PRIVS_ON;
}

int
container_check(const struct instance *inst, const struct job *job, struct err *e)
{
    bool is_apptainer;
    if (!job->req.container)
        return 0;
    auto_free char *program = find_runtime(inst, job->req.container, &is_apptainer);
    if (!program)
        return refuse_unfound(inst, job->req.container, e);
    if (!is_apptainer && cannot_map_ids(inst, job))
        return err_set(e, ERR_REFUSED,
                       "podman cannot run users' containers here: the setting no_new_privs "
                       "keeps newuidmap from working");
    return 0;
}

bool
container_hides_cards(const struct instance *inst, const struct job *job)
{
    bool is_apptainer = true;
    if (job->req.container)
        free(find_runtime(inst, job->req.container, &is_apptainer));
    return !is_apptainer;
}

/* --- devices --- */

static bool
has_vendor(const struct instance *inst, const struct attempt *run, enum gpu_vendor vendor)
{
    for (int i = 0; i < run->n_gpus; i++)
        if (ledger_card(inst->ledger, run->gpus[i])->info.vendor == vendor)
            return true;
    return false;
}

/* Calls take with each device file that a container needs for the attempt's GPUs. */
static void
each_device(const struct instance *inst, const struct attempt *run,
            void (*take)(void *ctx, const char *path), void *ctx)
{
    char path[40];
    if (has_vendor(inst, run, GPU_VENDOR_AMD))
        take(ctx, "/dev/kfd");
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if ((info->vendor != GPU_VENDOR_AMD && info->vendor != GPU_VENDOR_INTEL) ||
            info->dri_render < 0)
            continue;
        snprintf(path, sizeof path, "/dev/dri/renderD%d", info->dri_render);
        take(ctx, path);
        if (info->dri_card < 0)
            continue;
        snprintf(path, sizeof path, "/dev/dri/card%d", info->dri_card);
        take(ctx, path);
    }
}

static void
write_device(void *ctx, const char *path)
{
    jsonw_str(ctx, path);
}

static void
add_device(void *ctx, const char *path)
{
    buf_addf(ctx, "--device=%s ", path);
}

/* Writes both UUIDs and indices, because the machine's CDI specification may use either. */
static void
write_nvidia(const struct instance *inst, const struct attempt *run, struct jsonw *w)
{
    jsonw_karray(w, "uuids");
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if (info->vendor == GPU_VENDOR_NVIDIA)
            jsonw_str(w, info->uuid);
    }
    jsonw_end_array(w);
    jsonw_karray(w, "indices");
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if (info->vendor == GPU_VENDOR_NVIDIA) {
            auto_free char *number = xasprintf("%d", info->index);
            jsonw_str(w, number);
        }
    }
    jsonw_end_array(w);
}

void
container_write(const struct instance *inst, const struct job *job, int captured,
                struct jsonw *w)
{
    bool is_apptainer;
    auto_free char *program = find_runtime(inst, job->req.container, &is_apptainer);
    auto_free char *name = xasprintf("berth-%.8s-%u.%d", inst->name, job->id, job->run->number);
    jsonw_kobject(w, "container");
    jsonw_kstr(w, "image", job->req.container);
    jsonw_kstr(w, "program", program ? program : is_apptainer ? "apptainer" : "podman");
    jsonw_kbool(w, "apptainer", is_apptainer);
    jsonw_kstr(w, "name", name);
    jsonw_kint(w, "captured", captured);
    jsonw_kbool(w, "amd", has_vendor(inst, job->run, GPU_VENDOR_AMD));
    jsonw_karray(w, "mounts");
    for (char *const *m = job->req.container_mounts; m && *m; m++)
        jsonw_str(w, *m);
    jsonw_end_array(w);
    jsonw_karray(w, "devices");
    each_device(inst, job->run, write_device, w);
    jsonw_end_array(w);
    write_nvidia(inst, job->run, w);
    jsonw_end_object(w);
}

void
container_add_options(const struct instance *inst, const struct attempt *run, struct buf *out)
{
    each_device(inst, run, add_device, out);
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if (info->vendor == GPU_VENDOR_NVIDIA)
            buf_addf(out, "--device=nvidia.com/gpu=%s ", info->uuid);
    }
    buf_adds(out, "--env=BERTH_JOB_ID --env=BERTH_MARK");
}
