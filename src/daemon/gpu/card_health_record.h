/* What card_health.c and its neighbours store of each GPU and of jobs that met an error; no
 * other file includes this. */
#ifndef DAEMON_GPU_CARD_HEALTH_RECORD_H
#define DAEMON_GPU_CARD_HEALTH_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/ledger/cards.h"
#include "daemon/gpu/card_health.h"

#define RETURNS_MAX 3 /* automatic returns within a day */

struct instance;

enum fault {
    FAULT_NONE,
    FAULT_AWAY,   /* the GPU was missing, or has returned and is being checked */
    FAULT_DEVICE, /* reported by its driver or its memory */
};

struct record {
    enum gpu_state admin; /* UP, PAUSED, DRAINING */
    char by[33];
    char reason[HEALTH_TEXT_MAX];
    int64_t admin_us; /* wall clock */

    bool missing;       /* from the newest sample, or unreadable for too long */
    bool was_absent;    /* absent at some time while missing, not just unreadable */
    bool is_silent;     /* not listed because it did not answer during enumeration */
    int32_t n_unread;   /* consecutive samples in which it could not be read */
    int64_t removed_us; /* boot clock: when it was removed from the machine; 0: it was not */
    bool locked_out;    /* held by another daemon, which lock_text names */
    enum fault fault;
    int32_t xid; /* 0: the fault has no number */
    bool needs_reboot;
    bool trusted_worn; /* a user resumed it although its memory is worn out */
    bool was_reset;    /* since the fault */
    bool left_to_person;
    int64_t fault_us;          /* wall clock */
    enum health_memory memory; /* as last reported */
    int32_t clean;             /* consecutive samples without complaint since */
    char text[HEALTH_TEXT_MAX];
    char note[HEALTH_TEXT_MAX];
    char lock_text[HEALTH_TEXT_MAX];
    int64_t returns_us[RETURNS_MAX]; /* wall clock, newest first */
    /* the last fault, even if cleared: for jobs that ran then */
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

/* The owner of a process: kernel log messages about it may arrive after its end. */
struct owner {
    int32_t pid;
    uint32_t job;
};
#define OWNERS_MAX 256 /* a power of two; indexed by pid, newer entries replace older ones */

/* GPUs that did not answer during enumeration. */
#define UNANSWERED_MAX      8
#define UNANSWERED_TEXT_MAX 320

struct health {
    struct record records[GPU_MAX];
    int n_unanswered;
    char unanswered[UNANSWERED_MAX][UNANSWERED_TEXT_MAX];
    struct blame *blames;
    struct owner owners[OWNERS_MAX];
    bool log_known; /* log_seq was loaded from the store */
    bool log_dirty;
    int64_t log_seq; /* newest record of the kernel's log that was handled; -1: none */
};

/* Loads the GPU's stored record; a fault of another boot is dropped, because a reboot resets
 * GPUs. */
void record_load(struct instance *inst, int card, struct record *r);
void record_changed(struct cards *cards, int card); /* marks it to be stored */
void record_apply(struct cards *cards, int card);   /* sets the ledger's state */
void record_set_fault_text(struct record *r, const char *text);
/* card_health_removed.c: drops a GPU that was removed for long enough and holds no job. */
void health_let_go(struct cards *cards, int card);
/* Gives a new entry the faults of the GPU that it is, or is part of. */
void health_inherit(struct cards *cards, int card);
/* What is wrong, without the XID. */
const char *record_words(const struct record *r);
void record_clear_fault(struct record *r);
bool record_returned_often(const struct record *r, int64_t now_us);
void record_add_return(struct record *r, int64_t now_us);

#endif
