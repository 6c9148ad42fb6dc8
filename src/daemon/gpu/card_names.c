/* Names of GPUs: see card_names.h. Called by the methods that take GPUs, and for each request
 * before anything else reads it: a UUID identifies the GPU, and is replaced by its number
 * here. */
#include "daemon/gpu/card_names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "core/ledger/ledger.h"
#include "daemon/common/instance.h"

#define UUID_PREFIX_MIN 4 /* shorter ones are probably typing errors */

uint64_t
cardnames_present(const struct instance *inst)
{
    uint64_t set = 0;
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++)
        if (!ledger_card(inst->ledger, i)->gone)
            set |= UINT64_C(1) << i;
    return set;
}

/* The text lists the valid numbers, or shows the beginning of a UUID. */
int
cardnames_refuse(const struct instance *inst, const char *word, struct err *e)
{
    uint64_t present = cardnames_present(inst);
    if (!present)
        return err_set(e, ERR_USAGE, "no GPU '%.80s': this machine has no GPUs", word);
    int first = __builtin_ctzll(present), last = 63 - __builtin_clzll(present);
    const char *uuid = ledger_card(inst->ledger, first)->info.uuid;
    if (first == last)
        return err_set(e, ERR_USAGE, "no GPU '%.80s'; there is only gpu %d, %s", word, first,
                       uuid);
    return err_set(e, ERR_USAGE,
                   "no GPU '%.80s'; use %d-%d, a UUID or its beginning such as '%.12s', or all",
                   word, first, last, uuid);
}

int
cardnames_find(const struct instance *inst, const char *word, struct err *e)
{
    size_t n = strlen(word);
    int found = -1;
    for (int i = 0; n >= UUID_PREFIX_MIN && i < ledger_n_cards(inst->ledger); i++) {
        const struct card *c = ledger_card(inst->ledger, i);
        if (c->gone || strncasecmp(c->info.uuid, word, n) != 0)
            continue;
        if (found >= 0 && c->info.uuid[n] != '\0')
            return err_set(e, ERR_USAGE,
                           "'%.80s' matches the UUIDs of gpu %d and gpu %d; write more of it",
                           word, found, i);
        found = i;
    }
    return found >= 0 ? found : cardnames_refuse(inst, word, e);
}

/* word: a UUID or its beginning, or a number. */
static int
number_of(const struct instance *inst, const char *word, struct err *e)
{
    int64_t number;
    if (strspn(word, "0123456789") < strlen(word))
        return cardnames_find(inst, word, e);
    return parse_int(word, 0, GPU_MAX - 1, &number, e) < 0 ? -1 : (int)number;
}

int
cardnames_resolve(const struct instance *inst, struct request *r, struct err *e)
{
    uint8_t ids[REQUEST_IDS_MAX] = {0};
    int n = 0;
    if (!r->gpu_names)
        return 0;
    char *rest = r->gpu_names, *word;
    while ((word = strsep(&rest, ","))) {
        int card = number_of(inst, word, e);
        if (card < 0)
            return err_prefix(e, "gpu-ids");
        if (memchr(ids, card, (size_t)n))
            return err_set(e, ERR_USAGE, "gpu-ids names GPU %d twice", card);
        ids[n++] = (uint8_t)card; /* in bounds: the reader limited the count */
    }
    memcpy(r->demand.ids, ids, sizeof ids);
    free(TAKE(r->gpu_names));
    return 0;
}
