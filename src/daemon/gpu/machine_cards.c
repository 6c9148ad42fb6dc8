/* Creates and frees the state shared by the files of this folder: see machine_cards.h. Called
 * by berthd.c. */
#include "daemon/gpu/machine_cards.h"

#include <stdlib.h>

#include "base/err.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/prober.h"
#include "daemon/gpu/telemetry.h"

struct cards *
cards_new(struct instance *inst, struct card_facts *facts, const struct cards_host *host)
{
    struct cards *cards = xcalloc(1, sizeof *cards);
    cards->inst = inst;
    cards->facts = facts;
    cards->host = *host;
    cards->health = health_new();
    cards->telemetry = telemetry_new();
    uv_timer_init(inst->loop, &cards->clear_timer);
    cards->clear_timer.data = cards;
    return cards;
}

void
cards_close(struct cards *cards)
{
    prober_close(cards->prober);
    uv_close((uv_handle_t *)&cards->clear_timer, NULL);
}

void
cards_free(struct cards *cards)
{
    prober_free(cards->prober);
    health_free(cards->health);
    telemetry_free(cards->telemetry);
    free(cards->lock_conflict);
    free(cards);
}
