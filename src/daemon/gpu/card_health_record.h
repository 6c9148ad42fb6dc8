/* What card_health.c and its neighbours keep of each card and of jobs that met a fault; no
 * other file includes this. */
#ifndef DAEMON_GPU_CARD_HEALTH_RECORD_H
#define DAEMON_GPU_CARD_HEALTH_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/ledger/cards.h"
#include "daemon/gpu/card_health.h"

#define RETURNS_MAX 3 /* by itself, within a day */

struct instance;

enum fault {
    FAULT_NONE,
    FAULT_AWAY,   /* it was missing, and is until it has been checked */
    FAULT_DEVICE, /* its driver or its memory says so */
};

struct record {
    enum gpu_state admin; /* UP, PAUSED, DRAINING */
    char by[33];
    char reason[HEALTH_TEXT_MAX];
    int64_t admin_us; /* wall clock */

    bool missing;     /* from the newest sample, or unreadable for too long */
    bool was_absent;  /* since it is missing it was not there, which an unreadable one is */
    bool is_silent;   /* not listed, because it did not answer when the GPUs were looked for */
    int32_t n_unread; /* samples in a row in which it could not be read */
    int64_t removed_us; /* boot clock: when the machine had it no more; 0: it has it */
    bool locked_out;    /* another daemon has it; lock_text says which */
    enum fault fault;
    int32_t xid; /* 0: the fault has no number */
    bool needs_reboot;
    bool trusted_worn; /* a person wants it used although its memory is worn out */
    bool was_reset;    /* since the fault */
    bool left_to_person;
    int64_t fault_us;          /* wall clock */
    enum health_memory memory; /* as last reported */
    int32_t clean;             /* samples in a row without complaint since */
    char text[HEALTH_TEXT_MAX];
    char note[HEALTH_TEXT_MAX];
    char lock_text[HEALTH_TEXT_MAX];
    int64_t returns_us[RETURNS_MAX]; /* wall clock, newest first */
    /* the last fault, also when it is over: for jobs that ran then */
    int64_t last_us;
    char last_text[HEALTH_TEXT_MAX];
    bool dirty;
};

/* A job with an error of its own. */
struct blame {
    struct blame *next;
    uint32_t job;
    char text[HEALTH_TEXT_MAX];
};

/* Whose a process was: what the kernel's log says of it may come after its end. */
struct owner {
    int32_t pid;
    uint32_t job;
};
#define OWNERS_MAX 256 /* a power of two; by pid, the newer replaces the older */

/* GPUs that did not answer when they were looked for. */
#define UNANSWERED_MAX      8
#define UNANSWERED_TEXT_MAX 320

struct health {
    struct record records[GPU_MAX];
    int n_unanswered;
    char unanswered[UNANSWERED_MAX][UNANSWERED_TEXT_MAX];
    struct blame *blames;
    struct owner owners[OWNERS_MAX];
    bool log_known; /* the store has been asked */
    bool log_dirty;
    int64_t log_seq; /* the newest record of the kernel's log that was taken; -1 */
};

/* What the store has of the card; a fault of another boot is over, because a reboot resets. */
void record_load(struct instance *inst, int card, struct record *r);
void record_changed(struct cards *cards, int card); /* worth a write */
void record_apply(struct cards *cards, int card);   /* the ledger learns what counts */
void record_set_fault_text(struct record *r, const char *text);
/* card_health_removed.c: a card that was removed for long enough, and holds no job, is gone. */
void health_let_go(struct cards *cards, int card);
/* A new card has the faults of the GPU that it is, or is part of. */
void health_inherit(struct cards *cards, int card);
/* What is wrong, without its number. */
const char *record_words(const struct record *r);
void record_clear_fault(struct record *r);
bool record_returned_often(const struct record *r, int64_t now_us);
void record_add_return(struct record *r, int64_t now_us);

#endif
