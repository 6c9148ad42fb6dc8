/* Shared by allocation.c (the loop) and allocation_lines.c (the backlog). */
#ifndef SHEPHERD_SLURM_ALLOCATION_PRIV_H
#define SHEPHERD_SLURM_ALLOCATION_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <uthash.h>

#include "base/buf.h"
#include "shepherd/slurm/allocation_cards.h"
#include "shepherd/slurm/measure.h"
#include "shepherd/slurm/node_attempt.h"
#include "slurm/backlog.h"

/* A backlog line of an attempt to start. */
struct waiting {
    uint64_t key; /* job and attempt number */
    struct backlog_line line;
    bool is_taken;      /* started here or in another allocation */
    bool is_listed;     /* still in the backlog at its last reading */
    int64_t not_before; /* boot clock: retry time after it could not be opened */
    int64_t blocked_us; /* boot clock: since when it is first and has no room; 0: it is not */
    UT_hash_handle hh;  /* in the backlog's order */
};

/* An attempt running here. */
struct running {
    struct node_attempt attempt;
    int32_t stops_seen;
    bool is_cut;       /* stopped because the allocation ends */
    int64_t killed_us; /* boot clock: since when its supervisor is dead and has left processes;
                          0: it is alive */
    struct running *next;
};

struct allocation {
    char key[ALLOCATION_KEY_SIZE];
    struct allocation_spec spec;
    int dir, jobs; /* the allocation's folder, and the folder of all attempts */
    int sig_fd;
    int64_t end_us, idle_us; /* boot clock: end of the allocation, and since when it is idle */
    bool is_leaving;         /* starts nothing more */
    bool was_told;           /* Slurm has asked it to end */
    struct measure measure;
    struct allocation_cards cards;
    struct waiting *waiting;
    struct running *running;
    int n_running;
    bool has_orphans;    /* processes left by killed supervisors */
    unsigned passes;     /* of killing them */
    struct stat backlog; /* at its last reading */
    struct buf events;   /* not yet written */
};

/* allocation.c */
void allocation_say(struct allocation *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* allocation_lines.c: reads the backlog if it has changed. */
void allocation_read_backlog(struct allocation *a);
/* Starts the lines that fit. */
void allocation_start_lines(struct allocation *a, int64_t now_us);
void allocation_forget_lines(struct allocation *a);

#endif
