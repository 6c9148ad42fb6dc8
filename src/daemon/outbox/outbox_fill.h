/* Hooks: commands, webhooks and mails that report events of a job. */
#ifndef DAEMON_OUTBOX_OUTBOX_FILL_H
#define DAEMON_OUTBOX_OUTBOX_FILL_H

#include <stdbool.h>

struct config;
struct courier;
struct job;

/* True if a hook wants this kind of event of this job. Cheap. */
bool hooks_concern(const struct config *c, const struct job *job, const char *kind);

/* Call within the transaction that stores the event: posts the letters for it. line: the whole
 * event object. */
void hooks_post(struct courier *c, const struct job *job, const char *kind, const char *line);

/* A message about what this machine lacks for the job's hooks; NULL: nothing. The
 * caller frees. */
char *hooks_missing(const struct config *c, const struct job *job);

#endif
