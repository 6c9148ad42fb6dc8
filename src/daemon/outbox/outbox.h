/* The courier delivers the letters in the outbox, a few at a time, through separate processes
 * that run as the job's user (shepherd/nursery/deliver.c). Delivery is at least once: a row is
 * removed when its delivery is over, so a crash in between repeats it. */
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

/* One delivery, as input for its environment: see docs/protocol.md, section 4. */
struct delivery {
    const struct job *job;
    const char *kind;  /* the hook's type */
    const char *event; /* the whole event object */
    bool apart;        /* requested by the settings: the job's user must not influence it */
};

/* What the code that starts processes on this machine does for the courier. */
struct courier_host {
    void *arg;
    /* Write members of the order: the rules by which the account is checked, and the limits of
     * a job's hook, in cgroups of this name. */
    void (*write_account)(void *arg, struct jsonw *w);
    void (*write_groups)(void *arg, const struct job *job, const char *name, struct jsonw *w);
    /* Appends the environment. 0, or -1 with e. */
    int (*add_environment)(void *arg, const struct delivery *x, struct buf *out, struct err *e);
    /* Has a process forked that carries out the order in this file. Returns the socket on
     * which it reports the result; -1 with e. */
    int (*start)(void *arg, int order, struct err *e);
};

/* inst and the host's arg are borrowed. */
struct courier *courier_new(struct instance *inst, const struct courier_host *host);
/* Loads what the previous daemon left undelivered. */
int courier_load(struct courier *c, struct err *e);
void courier_close(struct courier *c); /* running deliveries finish by themselves */
void courier_free(struct courier *c);

/* Call within a transaction: adds a letter to be delivered after the commit. The store
 * numbers it. */
void courier_post(struct courier *c, const struct store_letter *letter);

/* save: before a commit, writes the results of deliveries. saved: after it, continues.
 * not_saved: takes back what was posted. */
void courier_save(struct courier *c);
void courier_saved(struct courier *c);
void courier_not_saved(struct courier *c);

/* True if nothing is left to deliver; with now, apart from letters that wait for a retry. */
bool courier_is_idle(const struct courier *c, bool now);

/* Number of letters not delivered yet. */
size_t courier_count(const struct courier *c);

#endif
