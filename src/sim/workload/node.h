/* The cards of one machine in virtual time: what is free on each and how many run there, and
 * the placing rule over them. What the ledger is to the daemon, without samples, strangers and
 * names: nothing but numbers, so that a placing costs some nanoseconds. */
#ifndef SIM_WORKLOAD_NODE_H
#define SIM_WORKLOAD_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/place/fit.h"

/* What a job asks of the cards. Jobs with the same shape stand in one line. */
struct shape {
    uint64_t allowed;       /* cards it may have */
    int32_t vram_mib;       /* on each card */
    uint8_t n;              /* cards, at least 1 */
    bool alone;             /* wants empty cards and does not share them */
    int16_t share_permille; /* asked for as this part of a card, and vram_mib is that of the
                               largest; 0: MiB were named */
};

struct node {
    int n;
    int32_t margin_mib;
    enum fit_rule rule;
    bool whole; /* every job is given empty cards */
    int64_t total_mib[GPU_MAX];
    int64_t free_mib[GPU_MAX]; /* -1: held by one that does not share */
    int32_t n_jobs[GPU_MAX];
    uint64_t all;
    uint8_t order[GPU_MAX]; /* cards by (free, number): node.c's */
};

/* n empty cards with these totals; the rule is FIT_BEST and whole false until set. */
void node_init(struct node *d, const int32_t *total_mib, int n, int32_t margin_mib);

/* What a job of this shape takes of a card with so much, as the daemon counts it. */
int64_t shape_takes_mib(const struct shape *s, int64_t total_mib);

/* Whether the shape fits on this card if it had this much free and this many jobs. */
bool node_card_does(const struct node *d, const struct shape *s, int card, int64_t free_mib,
                    int32_t n_jobs);
/* What is free on a card after the shape has been put there. */
int64_t node_free_after(const struct shape *s, int64_t free_mib);

bool node_fits(const struct node *d, const struct shape *s);       /* now */
bool node_fits_empty(const struct node *d, const struct shape *s); /* while it is empty */
uint64_t node_place(const struct node *d, const struct shape *s);  /* cards; 0: does not fit */

/* Cards by headroom, the smallest first, on which a job of this shape could be, whatever VRAM
 * it asks for; their number. */
int node_candidates(const struct node *d, const struct shape *s, uint8_t *out);
/* Whether that order is the one in which they are given: the first n that have room. */
bool node_packs(const struct node *d, const struct shape *s);
/* What a job of this shape may ask for on a card with this much free. */
int64_t node_room(const struct node *d, const struct shape *s, int64_t free_mib);

void node_take(struct node *d, const struct shape *s, uint64_t cards);
void node_give(struct node *d, const struct shape *s, uint64_t cards);

#endif
