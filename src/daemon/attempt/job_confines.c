/* What confines a job: see job_confines.h. Called by launch_spec.c, and by outbox_send.c for a
 * job's hooks. */
#include "daemon/attempt/job_confines.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/cpu_nodes.h"
#include "daemon/common/instance.h"
#include "daemon/nursery/nursery_link.h"
#include "spec/capabilities.h"
#include "sys/confine.h"

static void
write_cgroup(struct jsonw *w, const char *key, const char *base, const char *name)
{
    if (!base)
        return;
    auto_free char *path = xasprintf("%s/%s", base, name);
    jsonw_kstr(w, key, path);
}

/* If cgroup v2 already keeps a job's processes together, v1 groups are made only for limits,
 * because they cost each job 0.1 ms. With many users, every job has a limit on processes. */
static bool
needs_v1(const struct instance *inst, const struct confinement *place,
         const struct demand *need)
{
    return !place->base || inst->places.system || need->cpus > 0 || need->mem_mib > 0;
}

bool
confines_devices(const struct attempts *a)
{
    return a->wants_device_filter && nursery_place(a->nursery)->has[CONFINE_DEVICES];
}

char *
confines_unenforced(const struct attempts *a, const struct demand *need)
{
    const struct confinement *place = nursery_place(a->nursery);
    if (need->engine != ENGINE_HERE || need->mem_mib == 0 || place->has[CONFINE_MEMORY])
        return NULL;
    return xasprintf("--mem is not enforced by this daemon: %s ('berth doctor' says more)",
                     place->why[CONFINE_MEMORY]);
}

static bool
is_of_dri(const struct gpu_info *info)
{
    return info->vendor == GPU_VENDOR_AMD || info->vendor == GPU_VENDOR_INTEL;
}

static bool
has_device(const struct gpu_info *info)
{
    if (info->mig_gpu[0] && (info->mig_caps[0] < 0 || info->mig_caps[1] < 0))
        return false;
    return is_of_dri(info) ? info->dri_render >= 0 : info->minor >= 0;
}

void
confines_write_filter(const struct attempts *a, struct jsonw *w)
{
    jsonw_kbool(w, "device_filter", confines_devices(a));
    jsonw_kbool(w, "device_filter_required", a->inst->config.device_filter == DEVICE_FILTER_ON);
    jsonw_karray(w, "unfiltered_gpus");
    for (int i = 0; confines_devices(a) && i < ledger_n_cards(a->inst->ledger); i++)
        if (!has_device(&ledger_card(a->inst->ledger, i)->info))
            jsonw_int(w, i);
    jsonw_end_array(w);
}

/* Denies only devices of other GPUs known to us: displays have devices in /dev/dri too, and so
 * does NVIDIA's driver. */
static void
write_denied(const struct instance *inst, const struct attempt *run, struct jsonw *w)
{
    jsonw_karray(w, "dri_denied");
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, i)->info;
        if (!is_of_dri(info) || info->dri_render < 0 ||
            (run && memchr(run->gpus, i, (size_t)run->n_gpus)))
            continue;
        jsonw_int(w, info->dri_card);
        jsonw_int(w, info->dri_render);
    }
    jsonw_end_array(w);
}

/* In /dev/nvidia-caps, allows only what opens the job's own MIG instances. */
static void
write_instances(const struct attempts *a, const struct attempt *run, struct jsonw *w)
{
    if (a->cards->mig_major == 0)
        return;
    jsonw_kint(w, "mig_major", a->cards->mig_major);
    jsonw_karray(w, "mig_minors");
    for (int i = 0; run && i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(a->inst->ledger, run->gpus[i])->info;
        for (int k = 0; info->mig_gpu[0] && k < 2; k++)
            jsonw_int(w, info->mig_caps[k]);
    }
    jsonw_end_array(w);
}

/* Writes the GPUs that the job may open. If one of them has no known device, nothing is
 * filtered: a job that cannot open its own GPU would be worse. */
static void
write_devices(const struct attempts *a, const struct job *job, struct jsonw *w)
{
    const struct attempt *run = job->run;
    int n = run ? run->n_gpus : 0;
    if (!confines_devices(a))
        return;
    for (int i = 0; i < n; i++)
        if (run->gpus[i] >= ledger_n_cards(a->inst->ledger) ||
            !has_device(&ledger_card(a->inst->ledger, run->gpus[i])->info))
            return;
    jsonw_karray(w, "minors");
    for (int i = 0; i < n; i++) {
        const struct gpu_info *info = &ledger_card(a->inst->ledger, run->gpus[i])->info;
        if (!is_of_dri(info))
            jsonw_int(w, info->minor);
    }
    jsonw_end_array(w);
    write_denied(a->inst, run, w);
    write_instances(a, run, w);
}

/* The attempt's cgroup. The simulator has none, so base may be missing. */
static char *
group_of(const struct attempts *a, const struct job *job)
{
    const char *base = nursery_place(a->nursery)->base;
    return xasprintf("%s%sjob-%u.%d", base ? base : "", base ? "/" : "", job->id,
                     job->run->number);
}

/* GPUs capped through dmem are listed by region, the others by UUID. */
static void
write_cap(const struct attempts *a, const struct job *job, struct jsonw *w)
{
    const struct attempt *run = job->run;
    auto_buf struct buf uuids = BUF_INIT;
    const char *by = NULL;
    if (run->cap_mib == 0)
        return;
    auto_free char *group = group_of(a, job);
    jsonw_kobject(w, "cap");
    jsonw_kint(w, "mib", run->cap_mib);
    jsonw_kstr(w, "group", group);
    jsonw_karray(w, "keys");
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(a->inst->ledger, run->gpus[i])->info;
        if (info->cap == GPU_CAP_DMEM) {
            jsonw_str(w, info->cap_key);
            continue;
        }
        by = gpu_cap_name(info->cap);
        buf_addf(&uuids, "%s%s", uuids.len ? "," : "", info->uuid);
    }
    jsonw_end_array(w);
    if (by) {
        jsonw_kstr(w, "by", by);
        jsonw_kstr(w, "gpus", buf_str(&uuids));
        jsonw_kstr(w, "sim_dir", a->cards->sim_dir);
    }
    jsonw_end_object(w);
}

void
confines_write_cpus(const struct attempts *a, const struct job *job, struct jsonw *w)
{
    auto_buf struct buf cpus = BUF_INIT;
    cpu_nodes_add_cpus(a, (uint64_t)job->run->nodes, &cpus);
    if (cpus.len > 0)
        jsonw_kstr(w, "cpu_list", buf_str(&cpus));
}

void
confines_write_groups(const struct attempts *a, const struct job *job, const char *name,
                      struct jsonw *w)
{
    static const char *const keys[CGROUP_V1_N] = {"cgroup_memory", "cgroup_pids", "cgroup_cpu"};
    const struct confinement *place = nursery_place(a->nursery);
    const struct demand *need = &job->req.demand;
    auto_free char *own = name ? NULL : xasprintf("job-%u.%d", job->id, job->run->number);
    write_cgroup(w, "cgroup", place->base, name ? name : own);
    for (int i = 0; i < CGROUP_V1_N && needs_v1(a->inst, place, need); i++)
        write_cgroup(w, keys[i], place->v1[i], name ? name : own);
    jsonw_kint(w, "max_processes", a->inst->config.job_max_processes);
    jsonw_kint(w, "cpus", need->cpus);
    jsonw_kint(w, "mem_mib", need->mem_mib);
    write_devices(a, job, w);
    if (!name)
        write_cap(a, job, w);
}

void
confines_write_account(const struct instance *inst, struct jsonw *w)
{
    if (inst->config.pam_service[0])
        jsonw_kstr(w, "pam", inst->config.pam_service);
    if (inst->config.locked_accounts == LOCKED_RUN)
        jsonw_kbool(w, "locked_runs", true);
    uint64_t dropped = 0;
    if (capabilities_parse(inst->config.drop_capabilities, &dropped, NULL) == 0 && dropped)
        jsonw_kint(w, "drop_caps", (int64_t)dropped);
    if (inst->config.no_new_privs == NO_NEW_PRIVS_ON)
        jsonw_kbool(w, "no_new_privs", true);
}
