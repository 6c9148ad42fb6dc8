/* The courier: what lies in the outbox is delivered by processes of its own, as the user whose
 * job it is (shepherd/nursery/deliver.c), a few at a time. At least once: a row goes when its
 * delivery is over, so one that a crash interrupts is made again. */
#ifndef DAEMON_OUTBOX_OUTBOX_H
#define DAEMON_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct courier;
struct err;
struct instance;
struct job;
struct jsonw;
struct store_letter;

/* One delivery, for its environment: see docs/protocol.md, section 4. */
struct delivery {
    const struct job *job;
    const char *kind;  /* of the hook */
    const char *event; /* its whole object */
    bool apart;        /* it is the settings': nothing here is for the job's user to choose */
};

/* What the code that starts processes on this machine does for the courier. */
struct courier_host {
    void *arg;
    /* Members of the order: by which rules the account is judged, and the limits that a job's
     * hook is kept within, in groups of this name. */
    void (*write_account)(void *arg, struct jsonw *w);
    void (*write_groups)(void *arg, const struct job *job, const char *name, struct jsonw *w);
    /* Appends the variables. 0 or -1. */
    int (*add_environment)(void *arg, const struct delivery *x, struct buf *out, struct err *e);
    /* Has a process forked that carries out the order in this file. The socket over which it
     * says how that went; -1. */
    int (*start)(void *arg, int order, struct err *e);
};

/* inst: borrowed, as is what the host has in arg. */
struct courier *courier_new(struct instance *inst, const struct courier_host *host);
/* What a daemon before this one left undelivered. */
int courier_load(struct courier *c, struct err *e);
void courier_close(struct courier *c); /* deliveries under way end by themselves */
void courier_free(struct courier *c);

/* Within a transaction: one more to be delivered once it is committed; the store numbers it. */
void courier_post(struct courier *c, const struct store_letter *letter);

/* Before a commit: writes what became of deliveries. After it: goes on; or takes back what was
 * posted. */
void courier_save(struct courier *c);
void courier_saved(struct courier *c);
void courier_not_saved(struct courier *c);

/* Nothing is left to deliver; with now: but for what waits for another try. */
bool courier_is_idle(const struct courier *c, bool now);

/* How many have not been delivered yet. */
size_t courier_count(const struct courier *c);

#endif
