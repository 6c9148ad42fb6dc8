/* Reads the daemon's GPUs; see compat_cards.h. */
#include "compat/engine/compat_cards.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/ask/answer.h"
#include "wire/client.h"

void
compat_cards_init(struct compat_cards *c)
{
    *c = (struct compat_cards){0};
    for (int i = 0; i < GPU_MAX; i++)
        c->total_mib[i] = -1;
}

static void
take_card(struct compat_cards *c, const json_t *gpu)
{
    int64_t index = answer_int(gpu, "index", -1), total = answer_int(gpu, "total_mib", 0);
    int64_t free_mib = total - answer_int(gpu, "external_mib", 0);

    if (index < 0 || index >= GPU_MAX)
        return;
    c->listed |= UINT64_C(1) << index;
    c->listed_mib[index] = total;
    if (free_mib > 0 && (c->least_free_mib < 0 || free_mib < c->least_free_mib))
        c->least_free_mib = free_mib;
    if (strcmp(answer_str(gpu, "state"), "lost") == 0)
        return;
    c->there |= UINT64_C(1) << index;
    if (total > 0 || c->total_mib[index] < 0)
        c->total_mib[index] = total;
}

int
compat_cards_read(struct compat_cards *c, struct client *client, struct err *e)
{
    auto_json json_t *result = NULL;
    const char *why;
    size_t i;
    json_t *gpus, *gpu;

    if (client_call(client, "gpus", NULL, &result, e) < 0 ||
        !(gpus = answer_list(result, "gpus", e)))
        return -1;
    c->listed = c->there = 0;
    c->least_free_mib = -1;
    memset(c->listed_mib, -1, sizeof c->listed_mib);
    json_array_foreach(gpus, i, gpu) take_card(c, gpu);
    why = answer_str(result, "probe_error");
    snprintf(c->why_none, sizeof c->why_none, "%s", *why ? why : "this machine shows no GPU");
    return __builtin_popcountll(c->there);
}
