/* The settings as the planner's rules and limits: made at the start, and again when they have
 * changed. */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

#include "core/plan/limits.h"

struct instance;
struct views;

struct rules {
    struct instance *inst;    /* borrowed */
    struct views *views;      /* too: what is expected depends on the rules */
    struct limits limits;     /* as the settings have them */
    struct fair *fair;        /* owned, as is the instance's planner */
    struct modelfile *models; /* owned */
};

void rules_make(struct rules *r); /* all that is owned, from the settings */
void rules_read(struct rules *r); /* they have changed: from the next plan on */
void rules_take(struct rules *r); /* the same, with users as they are known so far */
void rules_free(struct rules *r);

#endif
