/* See job_environ_cards.h. Each vendor with GPUs in the machine gets its variables, so that a
 * job on one vendor's GPUs sees none of another's:
 *
 * - NVIDIA (and simulated): CUDA_VISIBLE_DEVICES, by UUID where a GPU is divided by MIG.
 * - AMD: ROCR_VISIBLE_DEVICES, by UUID if a GPU has one, else by ROCm's number. "" means none.
 *   HIP numbers the remaining GPUs from 0, and reads CUDA_VISIBLE_DEVICES if its own variable
 *   is not set: so HIP's is set, and CUDA's is not set on a machine without NVIDIA GPUs.
 * - Intel: ZE_AFFINITY_MASK, by number. Two more variables make Level Zero number GPUs by
 *   address and count cards rather than tiles. The mask has no value for "none".
 *
 * Where a device filter or a container hides the other GPUs, these libraries do not count
 * them. BERTH_CONTAINER_OPTIONS passes the GPUs on to a container that the job starts itself.
 * Called by job_environ.c. */
#include "daemon/attempt/job_environ_cards.h"

#include <string.h>

#include "base/buf.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/env_block.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/job_container.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/common/instance.h"

static bool
has_vendor(const struct instance *inst, enum gpu_vendor vendor)
{
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        if (ledger_card(inst->ledger, i)->info.vendor == vendor)
            return true;
    }
    return false;
}

/* Also true if nothing is known of any GPU. */
static bool
has_cuda(const struct instance *inst)
{
    return has_vendor(inst, GPU_VENDOR_NVIDIA) || has_vendor(inst, GPU_VENDOR_NONE) ||
           ledger_n_cards(inst->ledger) == 0;
}

/* Where a GPU is divided, CUDA numbers differently: it sees one instance, or whole GPUs. */
static bool
has_instances(const struct instance *inst)
{
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        const struct card *c = ledger_card(inst->ledger, i);
        if (!c->gone && c->info.mig_gpu[0])
            return true;
    }
    return false;
}

static bool
is_cuda(const struct gpu_info *info)
{
    return info->vendor == GPU_VENDOR_NVIDIA || info->vendor == GPU_VENDOR_NONE;
}

static void
add_item(struct buf *list, const char *text)
{
    buf_addf(list, "%s%s", list->len ? "," : "", text);
}

static void
add_number(struct buf *list, int32_t n)
{
    buf_addf(list, "%s%d", list->len ? "," : "", n);
}

static void
put_cuda(const struct attempts *a, const struct attempt *run, bool hidden, struct buf *out)
{
    auto_buf struct buf indices = BUF_INIT, uuids = BUF_INIT;
    bool by_uuid = a->inst->config.gpu_env == GPU_ENV_UUID || a->cards->renumbered ||
                   has_instances(a->inst) || hidden;
    for (int i = 0; run && i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(a->inst->ledger, run->gpus[i])->info;
        if (!is_cuda(info))
            continue;
        add_number(&indices, info->index);
        add_item(&uuids, info->uuid);
    }
    envblock_put(out, "CUDA_VISIBLE_DEVICES", buf_str(by_uuid ? &uuids : &indices));
    envblock_put(out, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    envblock_put(out, "NVIDIA_VISIBLE_DEVICES", uuids.len ? buf_str(&uuids) : "void");
}

/* The GPU's number as the job's library counts, leaving out GPUs that are hidden from
 * the job. */
static int32_t
number_in_job(const struct instance *inst, const struct attempt *run, bool hidden,
              const struct gpu_info *info)
{
    int32_t number = info->order;
    for (int i = 0; hidden && i < ledger_n_cards(inst->ledger); i++) {
        const struct gpu_info *other = &ledger_card(inst->ledger, i)->info;
        if (other->vendor == info->vendor && other->order >= 0 && other->order < info->order &&
            !memchr(run->gpus, i, (size_t)run->n_gpus))
            number--;
    }
    return number;
}

static void
put_amd(const struct instance *inst, const struct attempt *run, bool hidden, struct buf *out)
{
    auto_buf struct buf rocr = BUF_INIT, hip = BUF_INIT;
    int32_t n = 0;
    for (int i = 0; run && i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if (info->vendor != GPU_VENDOR_AMD)
            continue;
        if (strncmp(info->uuid, "GPU-", 4) == 0)
            add_item(&rocr, info->uuid);
        else if (info->order >= 0)
            add_number(&rocr, number_in_job(inst, run, hidden, info));
        else
            continue; /* unknown to ROCm */
        add_number(&hip, n++);
    }
    envblock_put(out, "ROCR_VISIBLE_DEVICES", buf_str(&rocr));
    envblock_put(out, "HIP_VISIBLE_DEVICES", buf_str(&hip));
}

static void
put_intel(const struct instance *inst, const struct attempt *run, bool hidden, struct buf *out)
{
    auto_buf struct buf mask = BUF_INIT;
    for (int i = 0; run && i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[i])->info;
        if (info->vendor == GPU_VENDOR_INTEL)
            add_number(&mask, number_in_job(inst, run, hidden, info));
    }
    envblock_put(out, "ZE_AFFINITY_MASK", buf_str(&mask));
    envblock_put(out, "ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1");
    envblock_put(out, "ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE");
}

static void
put_vendors(const struct attempts *a, const struct attempt *run, bool hidden, struct buf *out)
{
    if (has_cuda(a->inst))
        put_cuda(a, run, hidden, out);
    if (has_vendor(a->inst, GPU_VENDOR_AMD))
        put_amd(a->inst, run, hidden, out);
    if (has_vendor(a->inst, GPU_VENDOR_INTEL))
        put_intel(a->inst, run, hidden, out);
}

void
environ_put_cards(const struct attempts *a, const struct job *job, struct buf *out)
{
    const struct attempt *run = job->run;
    auto_buf struct buf indices = BUF_INIT, uuids = BUF_INIT, options = BUF_INIT;
    for (int i = 0; i < run->n_gpus; i++) {
        const struct gpu_info *info = &ledger_card(a->inst->ledger, run->gpus[i])->info;
        add_number(&indices, info->index);
        add_item(&uuids, info->uuid);
    }
    put_vendors(a, run,
                confines_devices(a) || container_hides_cards(a->inst, job) ||
                    mps_card_of(a->inst, job) >= 0,
                out);
    envblock_put(out, "BERTH_GPUS", buf_str(&indices));
    envblock_put(out, "BERTH_GPU_UUIDS", buf_str(&uuids));
    container_add_options(a->inst, run, &options);
    envblock_put(out, "BERTH_CONTAINER_OPTIONS", buf_str(&options));
}

void
environ_put_no_cards(const struct attempts *a, struct buf *out)
{
    put_vendors(a, NULL, confines_devices(a), out);
}

bool
environ_hides_cards(const struct instance *inst, const char *var)
{
    static const char CUDA[] = "CUDA_VISIBLE_DEVICES=", NVIDIA[] = "NVIDIA_VISIBLE_DEVICES=",
                      ORDINAL[] = "GPU_DEVICE_ORDINAL=";
    if (strncmp(var, ORDINAL, sizeof ORDINAL - 1) == 0)
        return has_vendor(inst, GPU_VENDOR_AMD);
    return (strncmp(var, CUDA, sizeof CUDA - 1) == 0 ||
            strncmp(var, NVIDIA, sizeof NVIDIA - 1) == 0) &&
           !has_cuda(inst);
}
