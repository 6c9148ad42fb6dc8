/* Hooks: the commands, webhooks and mails that report what happens to a job. */
#ifndef DAEMON_OUTBOX_OUTBOX_FILL_H
#define DAEMON_OUTBOX_OUTBOX_FILL_H

#include <stdbool.h>

struct config;
struct courier;
struct job;

/* Whether any hook wants this kind of event of this job. Cheap. */
bool hooks_concern(const struct config *c, const struct job *job, const char *kind);

/* Within the transaction that stores the event: puts what it leads to into the outbox. line:
 * the event's whole object. */
void hooks_post(struct courier *c, const struct job *job, const char *kind, const char *line);

/* What this machine lacks for what is asked, in words; NULL: nothing. The caller frees. */
char *hooks_missing(const struct config *c, const struct job *job);

#endif
