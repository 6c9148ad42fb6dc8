/* Turns the settings into the planner's rules and limits, at the start and after each change
 * of the settings. */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

#include "core/plan/limits.h"

struct instance;
struct views;

struct rules {
    struct instance *inst;    /* borrowed */
    struct views *views;      /* borrowed; expected starts depend on the rules */
    struct limits limits;     /* from the settings */
    struct fair *fair;        /* owned, as is inst->planner */
    struct modelfile *models; /* owned */
};

void rules_make(struct rules *r); /* builds all owned members from the settings */
void rules_take(struct rules *r); /* settings or users' uids have changed: for the next plan */
void rules_free(struct rules *r);

#endif
