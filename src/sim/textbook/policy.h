/* Scheduling policies as data: pass.c has one algorithm, and a row of this table says how it
 * goes. The names and what they do are those of the reference simulator. */
#ifndef SIM_TEXTBOOK_POLICY_H
#define SIM_TEXTBOOK_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/place/fit.h"

/* The order in which waiting jobs are tried. Ties: the earlier first. */
enum policy_order {
    ORDER_ARRIVAL,
    ORDER_SHORTEST, /* run time */
    ORDER_LONGEST,  /* run time, then GPUs, then VRAM, the largest first */
    ORDER_RATIO,    /* (waited + run) / run, the largest first; a run counts as a minute at
                       least */
};

/* Which job is served before all others, until one of them does not fit. */
enum policy_head {
    HEAD_NONE,   /* none: what does not fit is passed over, and may starve */
    HEAD_OLDEST, /* the first to arrive, once it has waited head_age_s */
    HEAD_FIRST,  /* the first in the order */
};

/* What the first head that does not fit means for the others. */
enum policy_blocked {
    BLOCKED_PASS, /* nothing */
    BLOCKED_STOP, /* they wait too */
    /* EASY: it is promised the first time at which it fits by what the running jobs are
     * expected to take, and the others may not be in its way then. */
    BLOCKED_RESERVE,
};

struct policy {
    const char *name;
    const char *help; /* one line */
    enum fit_rule fit;
    bool whole; /* no sharing: only cards without a job */
    enum policy_head head;
    enum policy_blocked blocked;
    enum policy_order order;
    bool estimates; /* believes what users declared; else knows true run times */
    int64_t head_age_s;
};

extern const struct policy policies[]; /* ends with a NULL name */

const struct policy *policy_find(const char *name); /* NULL: none */

#define RATIO_RUN_MIN_S 60

#endif
