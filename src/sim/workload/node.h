/* The cards of one machine in virtual time: free VRAM and number of jobs on each, and the
 * placement rule over them. It replaces the daemon's ledger, without samples, other processes
 * and names: only numbers, so that a placement takes some nanoseconds. */
#ifndef SIM_WORKLOAD_NODE_H
#define SIM_WORKLOAD_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/place/fit.h"

/* What a job requests of the cards. Jobs with the same shape share a line. */
struct shape {
    uint64_t allowed;       /* cards it may have */
    int32_t vram_mib;       /* on each card */
    uint8_t n;              /* number of cards, at least 1 */
    bool alone;             /* needs empty cards and does not share them */
    int16_t share_permille; /* requested as this part of a card; vram_mib is that part of the
                               largest card; 0: requested in MiB */
};

struct node {
    int n;
    int32_t margin_mib;
    enum fit_rule rule;
    bool whole; /* every job gets empty cards */
    int64_t total_mib[GPU_MAX];
    int64_t free_mib[GPU_MAX]; /* -1: held by a job that does not share */
    int32_t n_jobs[GPU_MAX];
    uint64_t all;
    uint8_t order[GPU_MAX]; /* cards sorted by (free, number); for node.c */
};

/* n empty cards with these totals. The rule is FIT_BEST, and whole is false, until set. */
void node_init(struct node *d, const int32_t *total_mib, int n, int32_t margin_mib);

/* The VRAM that a job of this shape takes of a card of this size, as the daemon counts it. */
int64_t shape_takes_mib(const struct shape *s, int64_t total_mib);

/* Whether the shape would fit on this card with this much free and this many jobs. */
bool node_card_does(const struct node *d, const struct shape *s, int card, int64_t free_mib,
                    int32_t n_jobs);
/* The free VRAM of a card after the shape is placed there. */
int64_t node_free_after(const struct shape *s, int64_t free_mib);

bool node_fits(const struct node *d, const struct shape *s);       /* now */
bool node_fits_empty(const struct node *d, const struct shape *s); /* if it were empty */
uint64_t node_place(const struct node *d, const struct shape *s);  /* mask; 0: none */

/* Cards, by ascending headroom, that a job of this shape could use, whatever VRAM it requests;
 * returns their number. */
int node_candidates(const struct node *d, const struct shape *s, uint8_t *out);
/* Whether cards are assigned in that order: the first n with room. */
bool node_packs(const struct node *d, const struct shape *s);
/* The most VRAM a job of this shape may request on a card with this much free. */
int64_t node_room(const struct node *d, const struct shape *s, int64_t free_mib);

void node_take(struct node *d, const struct shape *s, uint64_t cards);
void node_give(struct node *d, const struct shape *s, uint64_t cards);

#endif
