/* The settings as the planner's rules and limits: made at the start, and again when they have
 * changed. */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

struct daemon;

void rules_make(struct daemon *d); /* d->limits, d->fair, d->inst.planner from d->inst.config */
void rules_read(struct daemon *d); /* d->inst.config has changed: from the next plan on */
void rules_take(struct daemon *d); /* the same, with users as they are known so far */
void rules_free(struct daemon *d);

#endif
