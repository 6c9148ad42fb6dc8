/* All GPUs, and what jobs hold on each: the single answer to "how much is free". Reports come
 * in (cards, samples, states, holds); external use, budgets and headroom are kept up to date.
 * Meanings: "GPUs and the ledger" in the design, interfaces of the drop-in gpusched.
 *
 * Invariant: external, held and headroom of every card equal what ledger_check computes from
 * scratch, whatever was reported in whichever order. Card numbers are NVML indices. */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"
#include "core/ledger/cards.h"

/* Settings of the administrator. All sizes in MiB. */
struct ledger_policy {
    int32_t margin_mib;     /* kept free beside a declared job: 512 */
    int32_t idle_mib;       /* a card with less external use counts as idle: 1024 */
    int32_t clear_mib;      /* memory that may remain used after a job: 256 */
    int32_t spike_permille; /* added to measured use: 100 = 10 % */
    bool spread;            /* largest headroom first, instead of smallest */
};

/* One job's part of one card. */
struct hold {
    uint32_t job;
    int32_t demand_mib;     /* 0: the whole card */
    int32_t share_permille; /* of the card's compute; 0: none requested */
    bool by_share;          /* it declared no VRAM: demand_mib is its share of the card's */
    bool exclusive;         /* no other job beside it; true for a whole card */
    uint64_t user;          /* demand.user: whose job it is, if that matters; 0 */
    bool exceeded;          /* on_excess has been called */
    uint8_t over;           /* consecutive samples above its demand, at most EXCESS_SURE */
    int32_t now_mib;        /* in the newest sample; -1: not attributed */
    int32_t peak_mib;       /* -1: never attributed */
    bool unreported;        /* it has a process there with unreported memory */
    /* For ledger_is_clear; -1: unknown. */
    int64_t rest_mib; /* used memory that no listed process explained, last seen beside it */
    int64_t used_mib; /* used memory when it was booked */
};

/* A process that does not belong to our jobs. */
struct stranger {
    int32_t pid;
    int32_t mib;      /* current; -1: not reported */
    int32_t peak_mib; /* -1: none */
    int64_t start;
    int64_t since_us; /* first seen, on the clock of ledger_sample */
    int64_t uid;      /* -1: unknown */
    bool only_draws;  /* such a process does not count for a compute mode */
    bool seen;        /* in the newest list; only while reading one */
};

/* MPS could not be started for this user. The user is more likely to be the cause than the
 * card, so it does not affect other users. */
struct mps_refusal {
    uint64_t user;
    int64_t at_us;
    char why[120];
};
#define MPS_REFUSALS 8 /* per card; one that is dropped is only retried sooner */

struct card {
    struct gpu_info info;
    bool gone; /* removed for good: nothing is placed there, and its number may be reused */
    char cap_refused[72];   /* why its driver refused to cap a job; "": it did not */
    int64_t cap_refused_us; /* when it refused */
    /* Owned; the newest MPS_REFUSALS ones; user 0: unused. NULL: none yet. Clones of the
     * ledger, which only look ahead, share them. */
    struct mps_refusal *mps_refusals;
    char type[96];          /* info.name in lower case, matched against a demand's gpu_type */
    enum gpu_state admin;   /* set by a person: UP, PAUSED, DRAINING */
    enum gpu_state health;  /* observed: UP, LOST, UNKNOWN, SICK */
    int64_t state_since_us; /* last change of either */
    int32_t xid;            /* the driver's number for what made it sick; 0: none */
    char health_text[72];   /* why it is sick; "" */
    uint64_t links;         /* mask of cards joined to it by NVLink */
    /* The newest sample: */
    int64_t sampled_us;    /* 0: none yet */
    int64_t used_mib;      /* -1 */
    int32_t util;          /* -1 */
    int32_t temperature_c; /* -1 */
    int64_t energy_mj;     /* 0: not reported */
    int64_t step_mj;       /* since the previous sample; 0: unknown */
    int64_t step_us;       /* time since that sample */
    bool listed;           /* the sample had a process list */
    int64_t listed_mib;    /* sum of reported memory in that list */
    bool names_nobody;     /* there was no list, or an empty one */
    int64_t before_mib;    /* used but unlisted memory when no job of ours was here, or the
                              minimum since; -1: no such moment yet */
    /* Derived: */
    int64_t external_mib; /* used by other processes */
    int64_t held_mib;     /* sum of budgets; a whole-card hold counts as the card's size */
    int64_t headroom_mib; /* total - external - held; may be negative */
    bool countable;       /* its memory is known well enough to share the card */
    bool taken;           /* a job holds it whole or exclusively */
    int32_t share_held;   /* permille, sum over holds; never above 1000 */
    /* Lists: */
    struct hold *holds;
    int32_t n_holds;
    size_t cap_holds;
    struct stranger *strangers;
    int32_t n_strangers;
    size_t cap_strangers;
};

struct ledger;

/* Masks of cards by their info, cached because placements are far more frequent than
 * changes. */
struct ledger_sets {
    uint64_t present;              /* not gone */
    uint64_t instances;            /* MIG instances */
    uint64_t vendors[GPU_VENDORS]; /* by vendor */
};

#define EXCESS_SURE 2 /* consecutive samples needed: a single one may be wrong */

struct ledger_excess {
    uint32_t job;
    int32_t card;
    int32_t mib;          /* measured */
    int32_t declared_mib; /* the demand of this attempt */
    bool is_sure;         /* EXCESS_SURE consecutive samples; else it is the first one ever */
};
typedef void (*ledger_on_excess)(void *arg, const struct ledger_excess *x);

void ledger_policy_init(struct ledger_policy *p);         /* the defaults */
struct ledger *ledger_new(const struct ledger_policy *p); /* NULL: the defaults */
struct ledger *ledger_clone(const struct ledger *l);      /* for a look ahead */
void ledger_free(struct ledger *l);
const struct ledger_policy *ledger_policy(const struct ledger *l);

/* The machine. Cards are added in order of info->index, from 0; a new card is GPU_UNKNOWN
 * until its first sample. Until ledger_set_known, jobs that want a GPU wait with reason Probe,
 * and none is infeasible. Totals of 0 are unknown and not checked. */
int ledger_add_card(struct ledger *l, const struct gpu_info *info);
void ledger_set_info(struct ledger *l, int card,
                     const struct gpu_info *info); /* a card came back */
/* A MIG instance was removed, or a GPU was divided into instances; it holds no job. Without
 * this call it counts as one that may come back; describing it again brings it back. */
void ledger_set_gone(struct ledger *l, int card);
/* Another card takes over the number of a card that holds no job. */
void ledger_replace_card(struct ledger *l, const struct gpu_info *info);
void ledger_link(struct ledger *l, int a, int b);
void ledger_set_known(struct ledger *l);
bool ledger_is_known(const struct ledger *l);
void ledger_set_host(struct ledger *l, int32_t cpus, int64_t mem_mib);

/* How many more jobs may be sent to Slurm now: none before the first call. A booking uses up
 * one, and nothing of this machine. */
void ledger_set_slurm_room(struct ledger *l, int32_t n);
int32_t ledger_slurm_room(const struct ledger *l);

/* How VRAM is enforced for jobs that share a card: `mode` for jobs that do not say (a setting
 * of REQUIRE or OFF overrides the others), and the tolerance above it, in permille. */
void ledger_set_caps(struct ledger *l, enum vram_cap mode, int32_t tolerance_permille);
/* The mode for this demand: AUTO, REQUIRE or OFF. OFF for one that shares no card. A REQUIRE
 * by the job stays REQUIRE where the settings say OFF: it then gets no card. */
enum vram_cap ledger_cap_mode(const struct ledger *l, const struct demand *d);
/* Whether the card can cap jobs at all: the settings allow it, and no reason against it is
 * known. A card not yet described since a restart is assumed to. */
bool ledger_can_cap(const struct ledger *l, const struct card *c);
/* Whether the card can cap jobs, but not one with this demand, which is for a share of a card
 * whose size is unknown. */
bool ledger_lacks_size(const struct card *c, const struct demand *d);
/* The cap for a job with this demand on each of its cards; 0: none, because one of them cannot
 * enforce it or is of unknown size, or because it is not wanted. */
int32_t ledger_cap_mib(const struct ledger *l, const struct demand *d, const uint8_t *gpus,
                       int n);
/* The card's driver refused to cap a job: no more are tried until the card is described again
 * or sampled ten minutes later. why is truncated to fit; now_us as in ledger_sample. */
void ledger_set_cap_refused(struct ledger *l, int card, const char *why, int64_t now_us);

/* MPS (ledger_mps.c). The settings want it on these cards, a mask: jobs that share one of them
 * are clients of their user's MPS control daemon, and the card serves one user at a time. Not
 * for cards of other vendors, MIG instances, or cards that admit one process. */
void ledger_set_mps(struct ledger *l, uint64_t cards);
uint64_t ledger_mps(const struct ledger *l);
/* No card can have MPS, for this reason; "": available. */
void ledger_set_mps_missing(struct ledger *l, const char *why);
/* Why the user's jobs that share the card do not get MPS now: "" if the settings do not want
 * it, NULL if they get it. User 0: any user's. */
const char *ledger_mps_why(const struct ledger *l, const struct card *c, uint64_t user);
/* False: jobs of another user hold that card. */
bool ledger_mps_lets_in(const struct ledger *l, const struct card *c, const struct demand *d);
/* The card on which a job with this demand and these cards is to be an MPS client; -1: none,
 * because it shares no card, or several. */
int ledger_mps_card(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n);
/* What each process of such a job may allocate there: what the job declared, plus the
 * tolerance of ledger_set_caps. 0: unlimited. */
int32_t ledger_mps_mib(const struct ledger *l, const struct demand *d, int card);
/* MPS could not be started there for that user (not 0): the user's jobs get none until the
 * card is described again or sampled ten minutes later. Arguments as in
 * ledger_set_cap_refused. */
void ledger_set_mps_refused(struct ledger *l, int card, uint64_t user, const char *why,
                            int64_t now_us);

/* NUMA nodes. cpus: the node's CPUs that jobs may use; 0: no such node. Nodes from
 * LEDGER_NODES on have no CPUs here. */
#define LEDGER_NODES 64
void ledger_set_node(struct ledger *l, int node, int32_t cpus);
int32_t ledger_node_cpus(const struct ledger *l, int node);
int64_t ledger_node_held(const struct ledger *l, int node); /* cores of jobs bound to it */
/* The mode of jobs that do not say: AUTO, NODE or OFF. */
void ledger_set_bind(struct ledger *l, enum cpu_bind mode);
/* The mode for this demand. OFF if no node is near it, and for AUTO without cores. */
enum cpu_bind ledger_bind_mode(const struct ledger *l, const struct demand *d);

enum bind_verdict {
    BIND_NEAR,       /* bound to its cards' nodes */
    BIND_NOT_WANTED, /* OFF */
    BIND_UNKNOWN,    /* a card's node is unknown, or has no CPUs that jobs may use */
    BIND_EVERYWHERE, /* its cards' nodes have all CPUs */
    BIND_FULL,       /* too few free cores there */
};
/* The nodes that a job with these cards would be bound to now, as a mask; 0 unless NEAR. */
enum bind_verdict ledger_bind(const struct ledger *l, const struct demand *d,
                              const uint8_t *gpus, int n, uint64_t *nodes);

int ledger_n_cards(const struct ledger *l);
const struct card *ledger_card(const struct ledger *l, int card);
const struct card *ledger_cards(const struct ledger *l);        /* all of them, by number */
int ledger_find_uuid(const struct ledger *l, const char *uuid); /* card or -1 */
const struct ledger_sets *ledger_sets(const struct ledger *l);
uint64_t ledger_generation(const struct ledger *l); /* changes with the machine itself */
/* Changes whenever the set of cards with room for some job may have changed; always 0, which
 * says nothing, for a clone. */
uint64_t ledger_changes(const struct ledger *l);
/* Whether every job would find the same room in both: free and used memory, load and state of
 * each card; cores and host memory. */
bool ledger_has_room_as(const struct ledger *l, const struct ledger *other);
int32_t ledger_cpus(const struct ledger *l);
int64_t ledger_mem_mib(const struct ledger *l);
int64_t ledger_cpus_held(const struct ledger *l);
int64_t ledger_mem_held(const struct ledger *l);

/* States: one set by a person (UP, PAUSED, DRAINING) and one observed (UP, LOST, UNKNOWN,
 * SICK). The observed one takes precedence unless it is UP. */
void ledger_set_admin(struct ledger *l, int card, enum gpu_state s, int64_t now_us);
void ledger_set_health(struct ledger *l, int card, enum gpu_state s, int64_t now_us);
/* Sets SICK, with the driver's number (0: none) and a reason, truncated to fit. Both stay
 * until the card is UP. */
void ledger_set_sick(struct ledger *l, int card, int32_t xid, const char *text, int64_t now_us);
enum gpu_state card_state(const struct card *c);
/* Wall-clock time minus the ledger's clock, for showing times to people. */
void ledger_set_wall_offset(struct ledger *l, int64_t offset_us);
/* Since when the card is in its state, as wall-clock time; 0: unknown, or no offset was
 * set. */
int64_t ledger_state_since_wall_us(const struct ledger *l, const struct card *c);

/* An id that no job has, for bookings that are undone at once. */
#define LEDGER_TRIAL UINT32_MAX

/* Books cards, cores and host memory for the job when its start is decided. The caller has
 * placed it; a job found running after a restart is booked as it is. Aborts if the job already
 * holds something. A CPU-only job that names no cores books one. */
void ledger_hold(struct ledger *l, uint32_t job, const struct demand *d, const uint8_t *gpus,
                 int n);
void ledger_release(struct ledger *l, uint32_t job); /* no-op if it holds nothing */
/* The same in a look ahead: the memory measured for the job is free again, and the future load
 * of its cards is unknown. (ledger_release leaves measured values as they are, until a sample
 * shows the memory free.) */
void ledger_release_ahead(struct ledger *l, uint32_t job);
bool ledger_holds(const struct ledger *l, uint32_t job);
/* The nodes that ledger_hold bound the job to; 0: none. ledger_rebind: after a restart, the
 * nodes it was bound to. */
uint64_t ledger_bound(const struct ledger *l, uint32_t job);
void ledger_rebind(struct ledger *l, uint32_t job, uint64_t nodes);
const struct hold *ledger_find_hold(const struct ledger *l, int card,
                                    uint32_t job);                       /* or NULL */
int ledger_cards_of(const struct ledger *l, uint32_t job, uint8_t *out); /* as given; count */
int64_t card_budget(const struct ledger *l, const struct card *c, const struct hold *h);
/* After a restart: the peak measured before it. */
void ledger_restore_peak(struct ledger *l, int card, uint32_t job, int32_t peak_mib);
int32_t demand_cpus(const struct demand *d); /* cores it books */
/* The VRAM it wants on a card of this size: as declared, else its share of the card's (0 if
 * the size is unknown), else 0: the whole card. */
int32_t demand_vram_mib(const struct demand *d, int64_t total_mib);

/* Takes one card's sample, which describes the card at now_us or later (so pass the time at
 * which it was requested). A card that was UNKNOWN becomes UP. Processes whose job holds
 * nothing on this card count as strangers. Calls on_excess (may be NULL) when a job is first
 * measured above its demand on a card, and again when that is sure; it must not change the
 * ledger. now_us, ended_us and the times of states must be on the same clock, any clock. */
void ledger_sample(struct ledger *l, int card, const struct gpu_sample *s, int64_t now_us,
                   ledger_on_excess on_excess, void *arg);

/* A job's part, in millijoules, of the card's energy between its two newest samples, if the
 * job ran from from_us to to_us (boot clock): in proportion to time, and in equal parts among
 * jobs that share the card. 0: not reported. */
int64_t ledger_energy_mj(const struct ledger *l, int card, int64_t from_us, int64_t to_us);

/* Whether the job's memory is free again on the card (or on all its cards): a sample taken at
 * or after ended_us lists no process of the job, and the used memory that no listed process
 * explains is at most clear_mib above what it was beside the job (without a list: used memory
 * is at most that much above what it was when the job was booked). A lost card is clear; so is
 * one that does not report used memory, once the job is off its list. The caller must bound
 * the wait. */
bool ledger_is_clear(const struct ledger *l, int card, uint32_t job, int64_t ended_us);
bool ledger_job_is_clear(const struct ledger *l, uint32_t job, int64_t ended_us);

/* Recomputes all derived values. NULL if they agree, else what does not. */
const char *ledger_check(const struct ledger *l);

#endif
