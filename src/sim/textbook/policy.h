/* Scheduling policies as data: pass.c has a single algorithm, configured by a row of this
 * table. Names and behaviour are those of the reference simulator. */
#ifndef SIM_TEXTBOOK_POLICY_H
#define SIM_TEXTBOOK_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/place/fit.h"

/* The order in which waiting jobs are tried. Ties: the earlier arrival first. */
enum policy_order {
    ORDER_ARRIVAL,
    ORDER_SHORTEST, /* run time */
    ORDER_LONGEST,  /* run time, then GPUs, then VRAM, largest first */
    ORDER_RATIO,    /* largest (waited + run) / run first; a run counts as at least a minute */
};

/* Which job is served before all others, until such a job does not fit. */
enum policy_head {
    HEAD_NONE,   /* none: a job that does not fit is skipped, and may starve */
    HEAD_OLDEST, /* the first to arrive, once it has waited head_age_s */
    HEAD_FIRST,  /* the first in the order */
};

/* What the first head that does not fit does to the others. */
enum policy_blocked {
    BLOCKED_PASS, /* nothing */
    BLOCKED_STOP, /* they wait too */
    /* EASY: it is promised the first time at which it fits by the expected ends of the running
     * jobs, and the others must not delay that. */
    BLOCKED_RESERVE,
};

struct policy {
    const char *name;
    const char *help; /* one line */
    enum fit_rule fit;
    bool whole; /* no sharing: every job gets empty cards */
    enum policy_head head;
    enum policy_blocked blocked;
    enum policy_order order;
    bool estimates; /* uses the users' estimates; else the true run times */
    int64_t head_age_s;
};

extern const struct policy policies[]; /* ends with a NULL name */

const struct policy *policy_find(const char *name); /* NULL: none */

#define RATIO_RUN_MIN_S 60

#endif
