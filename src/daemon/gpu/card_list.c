/* Which GPUs there are, as the probe describes them at its start and whenever they change. A
 * GPU is identified by its UUID; its number is fixed for the life of this daemon. Called by
 * prober.c. */
#include "daemon/gpu/card_list.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/ledger/ledger.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/probe_json.h"
#include "daemon/gpu/telemetry.h"
#include "sys/confine.h"

static void
read_info(const json_t *j, struct gpu_info *info)
{
    *info = (struct gpu_info){0};
    info->index = (int32_t)probejson_int(json_object_get(j, "index"), -1);
    info->minor = (int32_t)probejson_int(json_object_get(j, "minor"), -1);
    info->numa = (int32_t)probejson_int(json_object_get(j, "numa"), -1);
    info->cc = (int32_t)probejson_int(json_object_get(j, "cc"), 0);
    info->order = (int32_t)probejson_int(json_object_get(j, "order"), -1);
    const json_t *dri = json_object_get(j, "dri");
    info->dri_card = (int32_t)probejson_int(json_array_get(dri, 0), -1);
    info->dri_render = (int32_t)probejson_int(json_array_get(dri, 1), -1);
    info->vendor = gpu_vendor_from_name(json_string_value(json_object_get(j, "vendor")));
    info->total_mib = probejson_int(json_object_get(j, "total_mib"), 0);
    probejson_copy(info->uuid, sizeof info->uuid, json_object_get(j, "uuid"));
    probejson_copy(info->name, sizeof info->name, json_object_get(j, "name"));
    probejson_copy(info->bus_id, sizeof info->bus_id, json_object_get(j, "bus_id"));
    const json_t *mig = json_object_get(j, "mig"), *caps = json_object_get(mig, "caps");
    probejson_copy(info->mig_gpu, sizeof info->mig_gpu, json_object_get(mig, "gpu"));
    info->mig_gi = (int32_t)probejson_int(json_object_get(mig, "gi"), -1);
    info->mig_ci = (int32_t)probejson_int(json_object_get(mig, "ci"), -1);
    for (size_t i = 0; i < 2; i++)
        info->mig_caps[i] = (int32_t)probejson_int(json_array_get(caps, i), -1);
    const char *compute = json_string_value(json_object_get(j, "compute_mode"));
    if (!compute || gpu_compute_from_name(compute, &info->compute))
        info->compute = GPU_COMPUTE_UNKNOWN;
}

/* Determines what can cap jobs on the GPU in the place where jobs run: the probe has only seen
 * the GPU's side of it. */
static void
read_cap(const struct cards *cards, const json_t *j, struct gpu_info *info)
{
    const struct confinement *place = cards->host.place(cards->host.arg);
    const char *cap = json_string_value(json_object_get(j, "cap"));
    const char *why = json_string_value(json_object_get(j, "cap_why"));
    probejson_copy(info->cap_key, sizeof info->cap_key, json_object_get(j, "cap_key"));
    if (!cap || gpu_cap_from_name(cap, &info->cap) < 0)
        info->cap = GPU_CAP_NONE;
    else if (info->cap == GPU_CAP_NVML && !place->base)
        why = "jobs have no cgroup v2 group here";
    else if (info->cap == GPU_CAP_DMEM && !place->has[CONFINE_VRAM])
        why = place->why[CONFINE_VRAM];
    else
        return;
    info->cap = GPU_CAP_NONE;
    snprintf(info->cap_why, sizeof info->cap_why, "%s",
             why && why[0] ? why : "it does not say");
}

/* Enters the GPU under a number that can be reused, else under the next. */
static int
enter_card(struct cards *cards, const struct gpu_info *info)
{
    struct gpu_info fresh = *info;
    fresh.index = health_free_number(cards);
    if (fresh.index >= 0) {
        telemetry_forget_card(cards, fresh.index);
        ledger_replace_card(cards->inst->ledger, &fresh);
        cards->n_saved = -1;
        return fresh.index;
    }
    fresh.index = ledger_n_cards(cards->inst->ledger);
    return fresh.index < GPU_MAX ? ledger_add_card(cards->inst->ledger, &fresh) : -1;
}

static void
take_card(struct cards *cards, const struct gpu_info *info)
{
    int card = ledger_find_uuid(cards->inst->ledger, info->uuid);
    if (card >= 0) {
        struct gpu_info same = *info;
        if (ledger_card(cards->inst->ledger, card)->gone)
            cards->n_saved = -1;
        cards->facts->renumbered |= info->index != card;
        same.index = card; /* the UUID identifies it; the number is ours */
        ledger_set_info(cards->inst->ledger, card, &same);
        health_listed(cards, card);
        return;
    }
    card = enter_card(cards, info);
    if (card < 0) {
        log_error("event=gpu-ignored gpu=%d over %d cards", info->index, GPU_MAX);
        return;
    }
    cards->facts->renumbered |= card != info->index;
    health_card_added(cards, card);
    log_info("event=gpu gpu=%d uuid=%s name=\"%s\" total_mib=%lld", card, info->uuid,
             info->name, (long long)info->total_mib);
}

/* Links use the probe's indices, which are not our numbers. */
static int
card_of_index(const struct instance *inst, const json_t *hello, const json_t *index)
{
    size_t i;
    const json_t *gpu;
    json_array_foreach(json_object_get(hello, "gpus"), i, gpu)
    {
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        if (uuid && json_equal(json_object_get(gpu, "index"), index))
            return ledger_find_uuid(inst->ledger, uuid);
    }
    return -1;
}

static bool
has_text(const json_t *list, const char *text)
{
    size_t i;
    const json_t *j;
    json_array_foreach(list, i, j)
    {
        if (json_is_string(j) && strcmp(json_string_value(j), text) == 0)
            return true;
    }
    return false;
}

static bool
is_described(const json_t *hello, const char *uuid)
{
    size_t i;
    const json_t *gpu;
    json_array_foreach(json_object_get(hello, "gpus"), i, gpu)
    {
        const char *other = json_string_value(json_object_get(gpu, "uuid"));
        if (other && strcmp(other, uuid) == 0)
            return true;
    }
    return false;
}

/* True if another undivided GPU is at this one's address. */
static bool
is_replaced(const json_t *hello, const struct gpu_info *info)
{
    size_t i;
    const json_t *gpu;
    if (info->mig_gpu[0] || !info->bus_id[0])
        return false;
    json_array_foreach(json_object_get(hello, "gpus"), i, gpu)
    {
        const char *bus_id = json_string_value(json_object_get(gpu, "bus_id"));
        if (bus_id && strcmp(bus_id, info->bus_id) == 0 && !json_object_get(gpu, "mig"))
            return true;
    }
    return false;
}

/* Marks as removed the entries that a GPU that answers no longer has, and GPUs that were
 * replaced. */
static void
take_removed(struct cards *cards, const json_t *hello)
{
    const json_t *divided = json_object_get(hello, "mig_gpus");
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++) {
        const struct gpu_info *info = &ledger_card(cards->inst->ledger, i)->info;
        const char *gpu = info->mig_gpu[0] ? info->mig_gpu : info->uuid;
        bool answers = has_text(divided, gpu) || is_described(hello, gpu);
        if (is_described(hello, info->uuid))
            continue;
        if (answers)
            health_removed(cards, i,
                           info->mig_gpu[0] ? "its MIG instance was removed"
                                            : "it was divided into MIG instances");
        else if (is_replaced(hello, info))
            health_removed(cards, i, "another GPU is in its place");
    }
}

void
cardlist_take(struct cards *cards, const json_t *hello)
{
    size_t i;
    const json_t *j;
    take_removed(cards, hello); /* first, because their numbers may be needed */
    health_take_unanswered(cards, json_object_get(hello, "unanswered"));
    cards->facts->mig_major = (int32_t)probejson_int(json_object_get(hello, "mig_major"), 0);
    json_array_foreach(json_object_get(hello, "gpus"), i, j)
    {
        struct gpu_info info;
        read_info(j, &info);
        read_cap(cards, j, &info);
        if (info.uuid[0])
            take_card(cards, &info);
    }
    json_array_foreach(json_object_get(hello, "links"), i, j)
    {
        int a = card_of_index(cards->inst, hello, json_array_get(j, 0));
        int b = card_of_index(cards->inst, hello, json_array_get(j, 1));
        if (a >= 0 && b >= 0)
            ledger_link(cards->inst->ledger, a, b);
    }
    cards->host.on_hello(cards->host.arg, hello);
    json_array_foreach(json_object_get(hello, "left_out"), i, j)
        log_info("event=gpu-left-out %s", json_string_value(j));
    ledger_set_known(cards->inst->ledger);
}
