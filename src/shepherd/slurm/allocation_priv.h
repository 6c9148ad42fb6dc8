/* What allocation.c (the loop) and allocation_lines.c (the backlog) share. */
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

/* A line of the backlog that asks for a start. */
struct waiting {
    uint64_t key; /* of both numbers */
    struct backlog_line line;
    bool is_taken;      /* here or elsewhere */
    bool is_listed;     /* in the backlog that was read last */
    int64_t not_before; /* boot clock: after it could not be opened */
    int64_t blocked_us; /* since when it is the first that finds no room; 0: it is not */
    UT_hash_handle hh;  /* in the backlog's order */
};

/* An attempt that runs here. */
struct running {
    struct node_attempt attempt;
    int32_t stops_seen;
    bool is_cut; /* stopped as the allocation ends */
    int64_t
        killed_us; /* boot clock: its supervisor was, and what that left is; 0: it was not */
    struct running *next;
};

struct allocation {
    char key[ALLOCATION_KEY_SIZE];
    struct allocation_spec spec;
    int dir, jobs; /* its folder, and that of all attempts */
    int sig_fd;
    int64_t end_us, idle_us; /* boot clock: its end, and since when nothing runs */
    bool is_leaving;         /* nothing more is started */
    bool was_told;           /* by Slurm, to end */
    struct measure measure;
    struct allocation_cards cards;
    struct waiting *waiting;
    struct running *running;
    int n_running;
    bool has_orphans;    /* left by supervisors that were killed */
    unsigned passes;     /* of killing them */
    struct stat backlog; /* as it was read last */
    struct buf events;   /* not written yet */
};

/* allocation.c */
void allocation_say(struct allocation *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* allocation_lines.c: reads the backlog where it has changed. */
void allocation_read_backlog(struct allocation *a);
/* Starts what fits. */
void allocation_start_lines(struct allocation *a, int64_t now_us);
void allocation_forget_lines(struct allocation *a);

#endif
