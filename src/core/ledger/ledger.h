/* All cards, and what jobs hold on each: the one answer to "how much is free". Facts come in
 * (cards, samples, states, holds); external use, budgets and headroom are kept up to date.
 * Meanings: "GPUs and the ledger" in the design, interfaces of the drop-in gpusched.
 *
 * Invariant: external, held and headroom of every card equal what ledger_check computes from
 * scratch, whatever came in and in whichever order. Card numbers are NVML indices. */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"
#include "core/ledger/cards.h"

/* What an administrator may set. All sizes MiB. */
struct ledger_policy {
    int32_t margin_mib;     /* kept free beside a declared job: 512 */
    int32_t idle_mib;       /* external below this: the card counts as idle: 1024 */
    int32_t clear_mib;      /* memory that may stay behind after a job: 256 */
    int32_t spike_permille; /* added to what was measured: 100 = 10 % */
    bool spread;            /* largest headroom first instead of smallest */
};

/* One job's part of one card. */
struct hold {
    uint32_t job;
    int32_t demand_mib;     /* 0: the whole card */
    int32_t share_permille; /* of the card's compute; 0: none was asked */
    bool by_share;          /* it declared no VRAM: demand_mib is its share of the card's */
    bool exclusive;         /* nothing of ours beside it; true for a whole card */
    uint64_t user;          /* demand.user: whose job it is, where that counts; 0 */
    bool exceeded;          /* on_excess has been called */
    uint8_t over;           /* samples in a row above its demand, EXCESS_SURE at most */
    int32_t now_mib;        /* measured in the newest sample; -1: not attributed */
    int32_t peak_mib;       /* -1: never attributed */
    bool unreported;        /* it has a process there whose memory is not reported */
    /* for ledger_is_clear; -1: not known */
    int64_t rest_mib; /* used memory that no listed process explained, last seen beside it */
    int64_t used_mib; /* used memory when it was booked */
};

/* A process that is not ours. */
struct stranger {
    int32_t pid;
    int32_t mib;      /* now; -1: not reported */
    int32_t peak_mib; /* -1 */
    int64_t start;
    int64_t since_us; /* first seen, on the clock of ledger_sample */
    int64_t uid;      /* -1: not known */
    bool only_draws;  /* a compute mode does not count it */
    bool seen;        /* in the newest list; only while one is read */
};

/* That MPS could not be started for a user. It is the user's own doing more often than not, so
 * it says nothing about others. */
struct mps_refusal {
    uint64_t user;
    int64_t at_us;
    char why[120];
};
#define MPS_REFUSALS 8 /* of a card; one that no longer fits is tried again sooner */

struct card {
    struct gpu_info info;
    bool gone; /* removed for good: nothing is placed there, and its number may be used again */
    char cap_refused[72];   /* why its driver would not cap a job; "": it has not refused */
    int64_t cap_refused_us; /* when that was */
    /* Owned, MPS_REFUSALS of them, the newest; user 0: none. NULL: there was none yet. Copies
     * of a ledger, which only look ahead, share them. */
    struct mps_refusal *mps_refusals;
    char type[96];         /* info.name in lower case, which a demand's gpu_type is sought in */
    enum gpu_state admin;  /* a person's word: UP, PAUSED, DRAINING */
    enum gpu_state health; /* the machine's: UP, LOST, UNKNOWN, SICK */
    int64_t state_since_us; /* of either, the last change */
    int32_t xid;            /* what made it sick, when the driver gave it a number; 0 */
    char health_text[72];   /* why it is sick, in words; "" */
    uint64_t links;         /* cards joined to it by NVLink */
    /* the newest sample */
    int64_t sampled_us;    /* 0: none yet */
    int64_t used_mib;      /* -1 */
    int32_t util;          /* -1 */
    int32_t temperature_c; /* -1 */
    int64_t energy_mj;     /* 0: not reported */
    int64_t step_mj;       /* since the sample before; 0: not known */
    int64_t step_us;       /* how long ago that was */
    bool listed;           /* it had a process list */
    int64_t listed_mib;    /* sum over that list, what was reported */
    bool names_nobody;     /* it had no list, or an empty one */
    int64_t before_mib; /* used and not listed when none of ours was here, or less since then;
                           -1: there has been no such moment */
    /* derived */
    int64_t external_mib; /* not ours */
    int64_t held_mib;     /* sum of budgets; a whole-card hold counts the card */
    int64_t headroom_mib; /* total - external - held; may be negative */
    bool countable;       /* memory is known well enough to share the card */
    bool taken;           /* a job holds it exclusively or whole */
    int32_t share_held;   /* permille, sum over holds; never above 1000 */
    /* lists */
    struct hold *holds;
    int32_t n_holds;
    size_t cap_holds;
    struct stranger *strangers;
    int32_t n_strangers;
    size_t cap_strangers;
};

struct ledger;

/* Which cards are what, by their infos: a place is sought far more often than these change. */
struct ledger_sets {
    uint64_t present;              /* not gone */
    uint64_t instances;            /* of MIG */
    uint64_t vendors[GPU_VENDORS]; /* by vendor */
};

#define EXCESS_SURE 2 /* samples in a row that say the same: one alone may be wrong */

struct ledger_excess {
    uint32_t job;
    int32_t card;
    int32_t mib;          /* measured */
    int32_t declared_mib; /* the demand of this attempt */
    bool is_sure;         /* EXCESS_SURE samples in a row said so; else it is the first ever */
};
typedef void (*ledger_on_excess)(void *arg, const struct ledger_excess *x);

void ledger_policy_init(struct ledger_policy *p);         /* the defaults */
struct ledger *ledger_new(const struct ledger_policy *p); /* NULL: the defaults */
struct ledger *ledger_clone(const struct ledger *l);      /* for a look ahead */
void ledger_free(struct ledger *l);
const struct ledger_policy *ledger_policy(const struct ledger *l);

/* The machine. Cards are added in index order from 0 (info->index says so); a new card is
 * GPU_UNKNOWN until its first sample. Until ledger_set_known, jobs that want a GPU wait with
 * reason Probe and none is infeasible. Totals of 0: not known, not checked. */
int ledger_add_card(struct ledger *l, const struct gpu_info *info);
void ledger_set_info(struct ledger *l, int card,
                     const struct gpu_info *info); /* it came back */
/* A MIG instance that was removed, or a GPU that was divided into some. It holds no job. Until
 * this is said it counts as one that may come back; described again it is back. */
void ledger_set_gone(struct ledger *l, int card);
/* Another card takes the number of one that holds no job. */
void ledger_replace_card(struct ledger *l, const struct gpu_info *info);
void ledger_link(struct ledger *l, int a, int b);
void ledger_set_known(struct ledger *l);
bool ledger_is_known(const struct ledger *l);
void ledger_set_host(struct ledger *l, int32_t cpus, int64_t mem_mib);

/* How many jobs more may be sent to Slurm now: none until this is said. A booking takes one;
 * it takes nothing of this machine. */
void ledger_set_slurm_room(struct ledger *l, int32_t n);
int32_t ledger_slurm_room(const struct ledger *l);

/* How jobs that share a card are held to their VRAM: `mode` for those that do not say (a
 * setting of REQUIRE or OFF binds the others too), and by how many thousandths of it they may
 * be over. */
void ledger_set_caps(struct ledger *l, enum vram_cap mode, int32_t tolerance_permille);
/* What counts for this demand: AUTO, REQUIRE or OFF. OFF for one that shares no card. REQUIRE
 * where the settings say OFF stays REQUIRE: no card can then be had. */
enum vram_cap ledger_cap_mode(const struct ledger *l, const struct demand *d);
/* Whether the card can cap jobs at all: the settings let it, and nothing says why it cannot. A
 * card that has not been described since a restart may. */
bool ledger_can_cap(const struct ledger *l, const struct card *c);
/* Whether it could cap jobs, but not one with this demand, which is for a share of its memory:
 * the size of that is not known. */
bool ledger_lacks_size(const struct card *c, const struct demand *d);
/* What a job with this demand is held to on each of its cards; 0: nothing holds it, as one of
 * them cannot, or lacks the size, or it is not wanted. */
int32_t ledger_cap_mib(const struct ledger *l, const struct demand *d, const uint8_t *gpus,
                       int n);
/* The card's driver would not cap a job: none is tried until the card is described again or
 * sampled ten minutes later. Words are cut to fit; now_us as in ledger_sample. */
void ledger_set_cap_refused(struct ledger *l, int card, const char *why, int64_t now_us);

/* MPS (ledger_mps.c). On these cards, a mask, the settings want it: jobs that share one of them
 * are clients of a control daemon of their user's, and the card serves one user at a time. It
 * is not for cards of other vendors, MIG instances, and cards that let one process in. */
void ledger_set_mps(struct ledger *l, uint64_t cards);
uint64_t ledger_mps(const struct ledger *l);
/* Nobody can have it on any card, for that reason; "": it can be had. */
void ledger_set_mps_missing(struct ledger *l, const char *why);
/* Why the user's jobs that share the card do not get MPS now: "" where the settings do not want
 * it, NULL where they get it. User 0: any user's. */
const char *ledger_mps_why(const struct ledger *l, const struct card *c, uint64_t user);
/* False: jobs of another user have that card. */
bool ledger_mps_lets_in(const struct ledger *l, const struct card *c, const struct demand *d);
/* The card on which a job with this demand and these cards is to be a client of MPS; -1: it is
 * none, as it shares no card or several. */
int ledger_mps_card(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n);
/* What each process of such a job may allocate there: what the job declared, plus the tolerance
 * of ledger_set_caps. 0: any amount. */
int32_t ledger_mps_mib(const struct ledger *l, const struct demand *d, int card);
/* It could not be started there for that user (not 0), whose jobs get none until the card is
 * described again or sampled ten minutes later. As ledger_set_cap_refused. */
void ledger_set_mps_refused(struct ledger *l, int card, uint64_t user, const char *why,
                            int64_t now_us);

/* NUMA nodes. How many CPUs of a node jobs may use; 0: there is no such node. Nodes from
 * LEDGER_NODES on have no CPUs here. */
#define LEDGER_NODES 64
void ledger_set_node(struct ledger *l, int node, int32_t cpus);
int32_t ledger_node_cpus(const struct ledger *l, int node);
int64_t ledger_node_held(const struct ledger *l, int node); /* cores of jobs bound to it */
/* What jobs do that do not say: AUTO, NODE or OFF. */
void ledger_set_bind(struct ledger *l, enum cpu_bind mode);
/* What counts for this demand. OFF for one that no node is near, and for AUTO without cores. */
enum cpu_bind ledger_bind_mode(const struct ledger *l, const struct demand *d);

enum bind_verdict {
    BIND_NEAR,       /* to the nodes of its cards */
    BIND_NOT_WANTED, /* OFF */
    BIND_UNKNOWN,    /* a card's node is not known, or has no CPUs that jobs may use */
    BIND_EVERYWHERE, /* its cards' nodes have all the CPUs */
    BIND_FULL,       /* others hold cores there, and too few are left */
};
/* To which nodes a job with these cards would be bound now, as a mask; 0 but for NEAR. */
enum bind_verdict ledger_bind(const struct ledger *l, const struct demand *d,
                              const uint8_t *gpus, int n, uint64_t *nodes);

int ledger_n_cards(const struct ledger *l);
const struct card *ledger_card(const struct ledger *l, int card);
const struct card *ledger_cards(const struct ledger *l);        /* all of them, by number */
int ledger_find_uuid(const struct ledger *l, const char *uuid); /* card or -1 */
const struct ledger_sets *ledger_sets(const struct ledger *l);
uint64_t ledger_generation(const struct ledger *l); /* moves when the machine itself changes */
/* Moves on with whatever may change the answer to what has room on its cards; 0, and nothing
 * can be told by it, for a clone. */
uint64_t ledger_changes(const struct ledger *l);
/* Whether every job would find there what it finds here: what is free, used and at work on each
 * card, and in which state it is; cores and host memory. */
bool ledger_has_room_as(const struct ledger *l, const struct ledger *other);
int32_t ledger_cpus(const struct ledger *l);
int64_t ledger_mem_mib(const struct ledger *l);
int64_t ledger_cpus_held(const struct ledger *l);
int64_t ledger_mem_held(const struct ledger *l);

/* States. Two voices: a person's (UP, PAUSED, DRAINING) and the machine's (UP, LOST,
 * UNKNOWN, SICK). What counts is the machine's, when it is not UP. */
void ledger_set_admin(struct ledger *l, int card, enum gpu_state s, int64_t now_us);
void ledger_set_health(struct ledger *l, int card, enum gpu_state s, int64_t now_us);
/* SICK, and why: the driver's number (0: it gave none) and words, which are cut to fit. Both
 * stay until the card is UP. */
void ledger_set_sick(struct ledger *l, int card, int32_t xid, const char *text, int64_t now_us);
enum gpu_state card_state(const struct card *c);
/* Wall time minus the ledger's clock, so that people can be shown since when. */
void ledger_set_wall_offset(struct ledger *l, int64_t offset_us);
/* Since when the card is in its state, as wall time; 0: not known, or no offset was set. */
int64_t ledger_state_since_wall_us(const struct ledger *l, const struct card *c);

/* No job has this number: bookings that are taken back at once. */
#define LEDGER_TRIAL UINT32_MAX

/* Books the cards, cores and host memory for the job, from the moment of the decision. The
 * caller has placed it; a job found running after a restart is booked as it is. Aborts when
 * the job already holds something. A CPU-only job that names no cores books one. */
void ledger_hold(struct ledger *l, uint32_t job, const struct demand *d, const uint8_t *gpus,
                 int n);
void ledger_release(struct ledger *l, uint32_t job); /* one that holds nothing is fine */
/* The same in a look ahead: the memory that it was measured to use has come back, and how busy
 * its cards will be is not known. (ledger_release leaves what was measured where it is, until
 * a sample says that it has gone.) */
void ledger_release_ahead(struct ledger *l, uint32_t job);
bool ledger_holds(const struct ledger *l, uint32_t job);
/* The nodes that ledger_hold bound it to; 0: none. After a restart: what it was bound to. */
uint64_t ledger_bound(const struct ledger *l, uint32_t job);
void ledger_rebind(struct ledger *l, uint32_t job, uint64_t nodes);
const struct hold *ledger_find_hold(const struct ledger *l, int card,
                                    uint32_t job);                       /* or NULL */
int ledger_cards_of(const struct ledger *l, uint32_t job, uint8_t *out); /* as given; count */
int64_t card_budget(const struct ledger *l, const struct card *c, const struct hold *h);
/* After a restart: what was measured before it. */
void ledger_restore_peak(struct ledger *l, int card, uint32_t job, int32_t peak_mib);
int32_t demand_cpus(const struct demand *d); /* cores it books */
/* VRAM it wants on a card of this size: what it declared, else its share of the card's (0 when
 * the size is not known), else 0: the whole card. */
int32_t demand_vram_mib(const struct demand *d, int64_t total_mib);

/* One card's sample, which describes the card at now_us or later (so pass the time at which
 * it was asked for). A card that was UNKNOWN is UP again. Processes whose job holds nothing
 * on this card count as strangers. Calls on_excess (may be NULL) when a job is
 * measured above its demand on a card for the first time, and again when that is sure; it must
 * not change the ledger. now_us, ended_us and the times of the states are on one clock,
 * whichever the caller likes. */
void ledger_sample(struct ledger *l, int card, const struct gpu_sample *s, int64_t now_us,
                   ledger_on_excess on_excess, void *arg);

/* A job's part, in millijoules, of what the card used between its two newest samples, when the
 * job ran from from_us to to_us (boot clock): that of the time, and of jobs that share it an
 * equal one each. 0: the card does not say. */
int64_t ledger_energy_mj(const struct ledger *l, int card, int64_t from_us, int64_t to_us);

/* Whether the job's memory is back on the card (on all its cards): a sample taken at or
 * after ended_us lists no process of it, and the used memory that no listed process explains
 * is at most clear_mib above what it was beside the job (without a list: used memory is at
 * most that much above what it was when the job was booked). A lost card is clear; so is one
 * that does not report used memory, once the job is off its list. The caller bounds the
 * wait. */
bool ledger_is_clear(const struct ledger *l, int card, uint32_t job, int64_t ended_us);
bool ledger_job_is_clear(const struct ledger *l, uint32_t job, int64_t ended_us);

/* Recomputes everything derived from scratch; NULL when it agrees, else what does not. */
const char *ledger_check(const struct ledger *l);

#endif
