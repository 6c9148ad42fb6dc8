/* Starting an attempt: its shepherd, from what is in its folder. */
#ifndef DAEMON_ATTEMPT_LAUNCH_H
#define DAEMON_ATTEMPT_LAUNCH_H

struct attempts;
struct job;
struct launches;

/* Those that are got ready before their start is durable. */
struct launches *launches_new(void);
void launches_free(struct launches *l);

/* The start is about to be committed, and the folder is there: has its shepherd forked, which
 * waits until launch_attempt tells it. Cannot fail: what was not done here is done there. */
void launch_ahead(struct attempts *a, const struct job *job);

/* The start is not to be: a shepherd that waits leaves. */
void launch_undo(struct attempts *a, const struct job *job);

/* The start is durable. Never fails towards its caller: an attempt that cannot be launched ends
 * as NEVER_RAN, and what kept it from that is the machine's trouble. */
void launch_attempt(struct attempts *a, struct job *job);

#endif
