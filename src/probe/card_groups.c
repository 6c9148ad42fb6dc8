/* See card_groups.h. Called by berth_probe.c. */
#include "probe/card_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/dmem.h"

#define MIB     (INT64_C(1) << 20)
#define MAX_ASK 4096 /* more groups than any machine has */

void
card_groups_clear(struct card_groups *g)
{
    for (int i = 0; i < g->n; i++)
        free((char *)(uintptr_t)g->list[i].name);
    g->n = 0;
}

void
card_groups_free(struct card_groups *g)
{
    card_groups_clear(g);
    free(g->list);
}

static int
card_of(const struct backend_machine *m, const char *uuid, size_t length)
{
    for (int i = 0; i < m->n; i++)
        if (strlen(m->cards[i].uuid) == length && memcmp(m->cards[i].uuid, uuid, length) == 0)
            return i;
    return -1;
}

void
card_groups_add(struct card_groups *g, const struct backend_machine *m, const char *words)
{
    const char *space = strchr(words, ' ');
    int card = space ? card_of(m, words, (size_t)(space - words)) : -1;

    if (card < 0 || !space[1] || g->n == MAX_ASK)
        return;
    g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
    g->list[g->n++] = (struct backend_group){
        .card = card, .name = xstrdup(space + 1), .mib = -1, .peak_mib = -1};
}

static int64_t
mib_up(int64_t bytes)
{
    return bytes < 0 ? -1 : (bytes + MIB - 1) / MIB;
}

void
card_groups_read_use(struct card_groups *g, const struct backend *b, void *state,
                     const struct backend_machine *m)
{
    for (int i = 0; i < g->n; i++) {
        struct backend_group *one = &g->list[i];
        const char *key = m->cards[one->card].cap_key;
        if (key[0]) {
            one->mib = mib_up(dmem_read_bytes(one->name, "dmem.current", key));
            one->peak_mib = mib_up(dmem_read_bytes(one->name, "dmem.peak", key));
        } else if (b->group_use) {
            b->group_use(state, one);
        }
    }
}

void
card_groups_find_dmem(struct backend_machine *m, const struct backend_config *config)
{
    for (int i = 0; i < m->n; i++) {
        struct backend_card *card = &m->cards[i];
        if (card->cap[0] || card->mig_gpu[0] || !(card->valid & CARD_HAS_BUS_ID) ||
            !config->cgroup_root)
            continue;
        int64_t bytes = 0;
        int n = dmem_find_region(config->cgroup_root, card->bus_id, card->cap_key,
                                 sizeof card->cap_key, &bytes);
        /* Intel's drivers report it less exactly, or not at all. */
        if (card->vendor == CARD_INTEL && bytes > 0)
            card->total_mib = bytes / MIB;
        if (n == 1)
            snprintf(card->cap, sizeof card->cap, "dmem");
        else
            card->cap_key[0] = '\0';
        if (n > 1)
            snprintf(card->cap_why, sizeof card->cap_why,
                     "the kernel counts its memory in %d parts (dmem)", n);
    }
}

static int
cap_each(const struct backend *b, void *state, const char *uuids, const char *group,
         int64_t mib, struct err *e)
{
    auto_free char *copy = xstrdup(uuids);
    char *rest = copy, *uuid;
    int rc = 0;

    while ((uuid = strsep(&rest, ","))) {
        struct err unused;
        /* Lifting continues after an error; setting is all or nothing. */
        if (b->cap(state, uuid, group, mib, rc < 0 ? &unused : e) == 0)
            continue;
        rc = -1;
        if (mib >= 0)
            break;
    }
    return rc;
}

int
card_groups_cap(const struct backend *b, const struct backend_config *config, const char *uuids,
                const char *group, int64_t mib, struct err *e)
{
    void *state = NULL;
    int rc = -1;

    if (!b->cap)
        err_set(e, ERR_USAGE, "the backend %s cannot limit memory", b->name);
    else if (b->open(config, &state, e) == 0)
        rc = cap_each(b, state, uuids, group, mib, e);
    if (rc < 0 && mib >= 0 && state && b->cap) {
        struct err unused;
        (void)cap_each(b, state, uuids, group, -1, &unused);
    }
    b->close(state);
    return rc;
}
