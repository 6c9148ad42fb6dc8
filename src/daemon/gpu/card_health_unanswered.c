/* GPUs that the probe could not read during enumeration. As those never listed cannot be
 * missed, they are named here, and new probes look for them as for a lost GPU. For a known GPU
 * this does not mean that it was reset meanwhile. Called by card_list.c with each hello, and
 * by prober.c. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/ledger/ledger.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health_record.h"
#include "daemon/gpu/machine_cards.h"

/* Without an address it may be any NVIDIA GPU. */
static bool
may_be(const json_t *unanswered, const struct gpu_info *info)
{
    const char *bus_id = json_string_value(json_object_get(unanswered, "bus_id"));
    return bus_id ? strcmp(bus_id, info->bus_id) == 0 : info->vendor == GPU_VENDOR_NVIDIA;
}

static void
note_card(struct cards *cards, int card, const json_t *list)
{
    struct record *r = &cards->health->records[card];
    const json_t *j;
    size_t i;
    r->is_silent = false;
    json_array_foreach(list, i, j)
    {
        if (!json_is_true(json_object_get(j, "lost")) &&
            may_be(j, &ledger_card(cards->inst->ledger, card)->info))
            r->is_silent = true;
    }
}

static bool
was_said(const struct health *before, const char *text)
{
    for (int i = 0; i < before->n_unanswered; i++)
        if (strcmp(before->unanswered[i], text) == 0)
            return true;
    return false;
}

void
health_take_unanswered(struct cards *cards, const json_t *list)
{
    struct health *h = cards->health;
    struct health before = {.n_unanswered = h->n_unanswered};
    const json_t *j;
    size_t i;
    memcpy(before.unanswered, h->unanswered, sizeof before.unanswered);
    h->n_unanswered = 0;
    json_array_foreach(list, i, j)
    {
        const char *text = json_string_value(json_object_get(j, "text"));
        if (!text || h->n_unanswered == UNANSWERED_MAX)
            continue;
        char *out = h->unanswered[h->n_unanswered++];
        snprintf(out, UNANSWERED_TEXT_MAX, "%s", text);
        if (!was_said(&before, out))
            log_warn("event=gpu-unanswered %s", out);
    }
    for (int c = 0; c < ledger_n_cards(cards->inst->ledger); c++)
        note_card(cards, c, list);
}

const char *
health_unanswered(const struct cards *cards, int i)
{
    return i < cards->health->n_unanswered ? cards->health->unanswered[i] : NULL;
}

bool
health_wants_new_probe(const struct cards *cards)
{
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        if (cards->health->records[i].missing && !cards->health->records[i].removed_us)
            return true;
    return cards->health->n_unanswered > 0;
}
