/* What the files of the ledger share: ledger.c, _hold, _sample, _derive. No other file
 * includes it. */
#ifndef CORE_LEDGER_LEDGER_PRIV_H
#define CORE_LEDGER_LEDGER_PRIV_H

#include <stddef.h>

#include "core/ledger/ledger.h"

#define HOLDINGS_FIRST 64 /* buckets of the table of holdings; a power of two */

/* Everything that one job holds. */
struct holding {
    uint32_t job;
    uint8_t n;
    uint8_t gpus[GPU_MAX];
    int32_t cpus;
    int32_t mem_mib;
    uint64_t nodes; /* to which it is bound; 0: it is not */
    struct holding *next;
};

struct ledger {
    struct ledger_policy policy;
    struct card *cards;      /* owned, as all below; a clone's are in its block */
    enum vram_cap cap_mode;  /* the settings' */
    int32_t cap_tolerance;   /* permille */
    enum cpu_bind bind_mode; /* the settings' */
    uint64_t mps;            /* cards on which the settings want MPS */
    char mps_missing[120];   /* why no card has it; "" */
    int32_t node_cpus[LEDGER_NODES];
    int64_t node_held[LEDGER_NODES]; /* cores of bound jobs */
    int n_cards;
    size_t cap_cards;
    bool known;
    uint64_t generation;
    uint64_t changes; /* 0: a clone, of which there may be others with the same number */
    struct ledger_sets sets;
    bool has_wall;
    int64_t wall_offset_us; /* wall time minus our clock */
    int32_t cpus;           /* 0: not known */
    int64_t mem_mib;        /* 0: not known */
    int64_t cpus_held;
    int64_t mem_held_mib;
    int32_t slurm_room;       /* how many more may be sent */
    struct holding **buckets; /* by job id, chained */
    size_t n_buckets;         /* a power of two */
    size_t n_holdings;
    char *block, *block_end; /* a clone: itself and what it copied; NULL */
};

/* ledger_mps.c: what was refused long ago is tried again. */
void mps_forget_old(struct ledger *l, struct card *c, int64_t now_us);

/* ledger_nodes.c: the cores of a holding on the nodes to which it is bound. */
void nodes_hold(struct ledger *l, struct holding *h, uint64_t nodes);
void nodes_release(struct ledger *l, struct holding *h);
bool nodes_agree(const struct ledger *l); /* for ledger_check */

struct card *card_at(struct ledger *l, int card); /* to change it; aborts when there is none */
void ledger_changed(struct ledger *l);
/* What a job that declared so many MiB may have at most: the settings' tolerance more. */
int32_t ledger_with_tolerance(const struct ledger *l, int64_t mib);
/* free and xgrow, for what may lie in a clone's block. */
void ledger_free_part(const struct ledger *l, void *p);
void *ledger_grow(const struct ledger *l, void *list, size_t n, size_t *cap, size_t size);
/* Sets what is derived: external, held, headroom, countable, taken. */
void card_derive(const struct ledger *l, struct card *c);
struct hold *card_hold(const struct card *c, uint32_t job); /* or NULL */
/* Used memory that no listed process explains: the driver's own, mostly. -1: not known. */
int64_t card_rest(const struct card *c);
/* Of a card that names no process: what is used and was not before our jobs came. */
int64_t card_grown(const struct card *c);
/* Whether that may be the job's: of one that was seen once, nothing is unknown. */
bool card_hides(const struct card *c, const struct hold *h);

#endif
