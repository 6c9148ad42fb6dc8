/* The numbers of GPUs: see card_numbers.h. Called by berthd.c at start, and by turn.c around a
 * commit. What is kept is a note of the store, {"boot", "cards": [{"uuid", "name",
 * "total_mib", "minor", "numa", "bus_id"}]}, in the order of the numbers. Without unfinished
 * jobs no number is in use that must stay, and the numbers follow the driver. */
#include "daemon/gpu/card_numbers.h"

#include <jansson.h>
#include <stdio.h>
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
#include "daemon/common/daemon.h"
#include "daemon/gpu/card_health.h"
#include "store/store.h"

#define NOTE "cards"

static void
copy_string(char *out, size_t size, const json_t *v)
{
    snprintf(out, size, "%s", json_is_string(v) ? json_string_value(v) : "");
}

static void
enter(struct daemon *d, const json_t *j)
{
    struct gpu_info info = {
        .index = ledger_n_cards(d->ledger),
        .minor = (int32_t)json_integer_value(json_object_get(j, "minor")),
        .numa = (int32_t)json_integer_value(json_object_get(j, "numa")),
        .total_mib = json_integer_value(json_object_get(j, "total_mib")),
        .compute = GPU_COMPUTE_UNKNOWN,
    };
    copy_string(info.uuid, sizeof info.uuid, json_object_get(j, "uuid"));
    copy_string(info.name, sizeof info.name, json_object_get(j, "name"));
    copy_string(info.bus_id, sizeof info.bus_id, json_object_get(j, "bus_id"));
    if (!info.uuid[0] || ledger_find_uuid(d->ledger, info.uuid) >= 0 || info.index == GPU_MAX)
        return;
    health_card_added(d, ledger_add_card(d->ledger, &info));
}

static void
recall(struct daemon *d, bool of_this_boot)
{
    auto_free char *text = store_note_get(d->store, NOTE);
    json_t *o = text ? json_loads(text, 0, NULL) : NULL;
    const char *boot = json_string_value(json_object_get(o, "boot"));
    size_t i;
    const json_t *j;
    if (!of_this_boot || (boot && strcmp(boot, clock_boot_id()) == 0))
        json_array_foreach(json_object_get(o, "cards"), i, j) enter(d, j);
    json_decref(o);
}

void
cards_recall(struct daemon *d)
{
    if (queue_n(d->queue) > 0)
        recall(d, true);
}

void
cards_recall_any(struct daemon *d)
{
    recall(d, false);
    if (ledger_n_cards(d->ledger) > 0)
        log_info("event=gpus-recalled gpus=%d", ledger_n_cards(d->ledger));
}

static char *
list(const struct daemon *d)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "boot", clock_boot_id());
    jsonw_key(&w, "cards");
    jsonw_array(&w);
    for (int i = 0; i < ledger_n_cards(d->ledger); i++) {
        const struct gpu_info *info = &ledger_card(d->ledger, i)->info;
        jsonw_object(&w);
        jsonw_kstr(&w, "uuid", info->uuid);
        jsonw_kstr(&w, "name", info->name);
        jsonw_kint(&w, "total_mib", info->total_mib);
        jsonw_kint(&w, "minor", info->minor);
        jsonw_kint(&w, "numa", info->numa);
        jsonw_kstr(&w, "bus_id", info->bus_id);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    return buf_take(&text);
}

void
cards_save(struct daemon *d)
{
    struct err e; /* sticks to the store; store_commit tells */
    if (!ledger_is_known(d->ledger) || d->cards_saved == ledger_n_cards(d->ledger))
        return;
    auto_free char *text = list(d);
    auto_free char *before = store_note_get(d->store, NOTE);
    if (!before || strcmp(before, text) != 0)
        store_note_put(d->store, NOTE, text, &e);
}

void
cards_saved(struct daemon *d)
{
    if (ledger_is_known(d->ledger))
        d->cards_saved = ledger_n_cards(d->ledger);
}
