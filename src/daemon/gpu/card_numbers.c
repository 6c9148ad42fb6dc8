/* The numbers of GPUs: see card_numbers.h. Called by berthd.c at start, and by turn.c around a
 * commit. The list is a note of the store, {"boot", "simulated", "cards": [{"uuid", "name",
 * "total_mib", "minor", "numa", "bus_id", "vendor", ...}]}, in the order of the numbers.
 * Without unfinished jobs no number has to be preserved, and the numbers follow the driver. */
#include "daemon/gpu/card_numbers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/probe_json.h"
#include "store/store.h"

#define NOTE "cards"

/* -1 if the note lacks the member, as notes of earlier daemons may. */
static int32_t
noted(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_integer(v) ? (int32_t)json_integer_value(v) : -1;
}

static void
enter(struct cards *cards, const json_t *j)
{
    struct gpu_info info = {
        .index = ledger_n_cards(cards->inst->ledger),
        .minor = (int32_t)json_integer_value(json_object_get(j, "minor")),
        .numa = (int32_t)json_integer_value(json_object_get(j, "numa")),
        .cc = noted(j, "cc") > 0 ? noted(j, "cc") : 0,
        .order = noted(j, "order"),
        .dri_card = noted(j, "dri_card"),
        .dri_render = noted(j, "dri_render"),
        .vendor = gpu_vendor_from_name(json_string_value(json_object_get(j, "vendor"))),
        .total_mib = json_integer_value(json_object_get(j, "total_mib")),
        .compute = GPU_COMPUTE_UNKNOWN,
    };
    probejson_copy(info.uuid, sizeof info.uuid, json_object_get(j, "uuid"));
    probejson_copy(info.name, sizeof info.name, json_object_get(j, "name"));
    probejson_copy(info.bus_id, sizeof info.bus_id, json_object_get(j, "bus_id"));
    probejson_copy(info.mig_gpu, sizeof info.mig_gpu, json_object_get(j, "mig_gpu"));
    info.mig_gi = noted(j, "mig_gi");
    info.mig_ci = noted(j, "mig_ci");
    info.mig_caps[0] = noted(j, "mig_gi_cap");
    info.mig_caps[1] = noted(j, "mig_ci_cap");
    if (!info.uuid[0] || ledger_find_uuid(cards->inst->ledger, info.uuid) >= 0 ||
        info.index == GPU_MAX)
        return;
    health_card_added(cards, ledger_add_card(cards->inst->ledger, &info));
    if (json_is_true(json_object_get(j, "gone")))
        ledger_set_gone(cards->inst->ledger, info.index);
}

/* MIG instances are recreated after a boot, perhaps after the daemon starts: jobs that need
 * them wait (card_health_removed.c). */
static bool
has_instances(const json_t *cards)
{
    size_t i;
    const json_t *j;
    json_array_foreach(cards, i, j)
    {
        if (json_object_get(j, "mig_gpu") && !json_is_true(json_object_get(j, "gone")))
            return true;
    }
    return false;
}

static void
recall(struct cards *cards, bool of_this_boot)
{
    auto_free char *text = store_note_get(cards->inst->store, NOTE);
    json_t *o = text ? json_loads(text, 0, NULL) : NULL;
    const char *boot = json_string_value(json_object_get(o, "boot"));
    bool were_simulated = json_is_true(json_object_get(o, "simulated"));
    size_t i;
    const json_t *j;
    if (!of_this_boot && were_simulated && !cards->facts->sim_dir)
        log_info("event=gpus-forgotten they were simulated");
    else if (!of_this_boot || (boot && strcmp(boot, clock_boot_id()) == 0) ||
             has_instances(json_object_get(o, "cards")))
        json_array_foreach(json_object_get(o, "cards"), i, j) enter(cards, j);
    json_decref(o);
}

void
cards_recall(struct cards *cards)
{
    if (queue_n(cards->inst->queue) > 0)
        recall(cards, true);
}

void
cards_recall_any(struct cards *cards)
{
    recall(cards, false);
    if (ledger_n_cards(cards->inst->ledger) > 0)
        log_info("event=gpus-recalled gpus=%d", ledger_n_cards(cards->inst->ledger));
}

static void
write_instance(const struct gpu_info *info, struct jsonw *w)
{
    jsonw_kstr(w, "mig_gpu", info->mig_gpu);
    jsonw_kint(w, "mig_gi", info->mig_gi);
    jsonw_kint(w, "mig_ci", info->mig_ci);
    jsonw_kint(w, "mig_gi_cap", info->mig_caps[0]);
    jsonw_kint(w, "mig_ci_cap", info->mig_caps[1]);
}

static char *
list(const struct cards *cards)
{
    const struct instance *inst = cards->inst;
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "boot", clock_boot_id());
    jsonw_kbool(&w, "simulated", cards->facts->sim_dir != NULL);
    jsonw_karray(&w, "cards");
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        const struct gpu_info *info = &ledger_card(inst->ledger, i)->info;
        jsonw_object(&w);
        jsonw_kstr(&w, "uuid", info->uuid);
        jsonw_kstr(&w, "name", info->name);
        jsonw_kint(&w, "total_mib", info->total_mib);
        jsonw_kint(&w, "minor", info->minor);
        jsonw_kint(&w, "numa", info->numa);
        jsonw_kint(&w, "cc", info->cc);
        jsonw_kint(&w, "order", info->order);
        jsonw_kint(&w, "dri_card", info->dri_card);
        jsonw_kint(&w, "dri_render", info->dri_render);
        jsonw_kstr(&w, "vendor", gpu_vendor_name(info->vendor));
        jsonw_kstr(&w, "bus_id", info->bus_id);
        if (info->mig_gpu[0])
            write_instance(info, &w);
        if (ledger_card(inst->ledger, i)->gone)
            jsonw_kbool(&w, "gone", true);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    return buf_take(&text);
}

void
cards_save(struct cards *cards)
{
    struct err e; /* kept in the store; store_commit reports it */
    if (!ledger_is_known(cards->inst->ledger) ||
        cards->n_saved == ledger_n_cards(cards->inst->ledger))
        return;
    auto_free char *text = list(cards);
    auto_free char *before = store_note_get(cards->inst->store, NOTE);
    if (!before || strcmp(before, text) != 0)
        store_note_put(cards->inst->store, NOTE, text, &e);
}

void
cards_saved(struct cards *cards)
{
    if (ledger_is_known(cards->inst->ledger))
        cards->n_saved = ledger_n_cards(cards->inst->ledger);
}
