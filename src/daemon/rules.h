/* The settings as the planner's rules and limits: made once at the start. */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

struct daemon;

void rules_make(struct daemon *d); /* d->limits, d->fair, d->planner from d->config */
void rules_free(struct daemon *d);

#endif
