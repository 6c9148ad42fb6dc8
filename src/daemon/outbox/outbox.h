/* The courier: what lies in the outbox is delivered by processes of its own, as the user whose
 * job it is (shepherd/nursery/deliver.c), a few at a time. At least once: a row goes when its
 * delivery is over, so one that a crash interrupts is made again. */
#ifndef DAEMON_OUTBOX_OUTBOX_H
#define DAEMON_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct courier;
struct daemon;
struct err;
struct job;

struct courier *courier_new(struct daemon *d);
/* What a daemon before this one left undelivered. */
int courier_load(struct daemon *d, struct err *e);
void courier_close(struct courier *c); /* deliveries under way end by themselves */
void courier_free(struct courier *c);

/* Within a transaction: one more to be delivered once it is committed. site: it comes from the
 * settings, and not from the job. */
void courier_post(struct daemon *d, const struct job *job, const char *kind, const char *target,
                  bool site, const char *event);

/* Before a commit: writes what became of deliveries. After it: goes on; or takes back what was
 * posted. */
void courier_save(struct daemon *d);
void courier_saved(struct daemon *d);
void courier_not_saved(struct daemon *d);

/* Nothing is left to deliver; with now: but for what waits for another try. */
bool courier_is_idle(const struct courier *c, bool now);

/* How many have not been delivered yet. */
size_t courier_count(const struct courier *c);

#endif
