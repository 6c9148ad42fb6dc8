/* Shared by the ledger's files. No other file includes it. */
#ifndef CORE_LEDGER_LEDGER_PRIV_H
#define CORE_LEDGER_LEDGER_PRIV_H

#include <stddef.h>

#include "core/ledger/ledger.h"

#define HOLDINGS_FIRST 64 /* buckets of the holdings table; a power of two */

/* All that one job holds. */
struct holding {
    uint32_t job;
    uint8_t n;
    uint8_t gpus[GPU_MAX];
    int32_t cpus;
    int32_t mem_mib;
    uint64_t nodes; /* nodes it is bound to; 0: none */
    struct holding *next;
};

struct ledger {
    struct ledger_policy policy;
    struct card *cards;      /* owned, as all below; in a clone, part of its block */
    enum vram_cap cap_mode;  /* from the settings */
    int32_t cap_tolerance;   /* permille */
    enum cpu_bind bind_mode; /* from the settings */
    uint64_t mps;            /* cards on which the settings want MPS */
    char mps_missing[120];   /* why no card has MPS; "" */
    int32_t node_cpus[LEDGER_NODES];
    int64_t node_held[LEDGER_NODES]; /* cores of bound jobs */
    int n_cards;
    size_t cap_cards;
    bool known;
    uint64_t generation;
    uint64_t changes; /* 0 in a clone: several clones could share a number */
    struct ledger_sets sets;
    bool has_wall;
    int64_t wall_offset_us; /* wall clock minus the ledger's clock */
    int32_t cpus;           /* 0: unknown */
    int64_t mem_mib;        /* 0: unknown */
    int64_t cpus_held;
    int64_t mem_held_mib;
    int32_t slurm_room;       /* jobs that may still be sent */
    struct holding **buckets; /* hash table by job id, chained */
    size_t n_buckets;         /* a power of two */
    size_t n_holdings;
    char *block, *block_end; /* a clone: the memory block of all its parts; NULL */
};

/* ledger_mps.c: drops old refusals, so that MPS is tried again. */
void mps_forget_old(struct ledger *l, struct card *c, int64_t now_us);

/* ledger_nodes.c: books a holding's cores on the nodes to which it is bound. */
void nodes_hold(struct ledger *l, struct holding *h, uint64_t nodes);
void nodes_release(struct ledger *l, struct holding *h);
bool nodes_agree(const struct ledger *l); /* for ledger_check */

struct card *card_at(struct ledger *l, int card); /* to change it; aborts if there is none */
void ledger_changed(struct ledger *l);
/* The most that a job declaring this many MiB may use: with the settings' tolerance. */
int32_t ledger_with_tolerance(const struct ledger *l, int64_t mib);
/* free and xgrow, for memory that may be part of a clone's block. */
void ledger_free_part(const struct ledger *l, void *p);
void *ledger_grow(const struct ledger *l, void *list, size_t n, size_t *cap, size_t size);
/* Sets the derived values: external, held, headroom, countable, taken. */
void card_derive(const struct ledger *l, struct card *c);
struct hold *card_hold(const struct card *c, uint32_t job); /* or NULL */
/* Used memory that no listed process explains, mostly the driver's. -1: unknown. */
int64_t card_rest(const struct card *c);
/* For a card that lists no process: the growth of used memory since before our jobs came. */
int64_t card_grown(const struct card *c);
/* Whether that growth may be the job's: not if the job was ever listed, because its use is
 * known. */
bool card_hides(const struct card *c, const struct hold *h);

#endif
