/* Jobs that had not ended when the daemon before this one did: from the store into the state,
 * and, once the GPUs are known, their attempts onto these. */
#ifndef DAEMON_TURN_JOBS_KEPT_H
#define DAEMON_TURN_JOBS_KEPT_H

#include <stddef.h>

struct attempts_kept;
struct err;
struct job;
struct state;
struct store;

/* What is asked of the parts of the daemon. */
struct kept_host {
    void *arg;
    /* A key that no job of Slurm has: the row of an attempt is lost, and with it its key. */
    void (*make_key)(char *key, size_t size);
    /* The machine no longer shows this GPU of a job that runs. It is in the ledger again, with
     * nothing but its UUID. */
    void (*card_missing)(void *arg, int card);
    /* What the attempt holds is booked: what has become of it is now to be found out, and
     * posted. */
    void (*take_up)(void *arg, struct job *job);
};

/* Before the GPUs are known. *attempts: those that were under way, for attempts_take_up. */
int jobs_load(struct state *s, struct store *store, const struct kept_host *host,
              struct attempts_kept **attempts, struct err *e);

/* With the GPUs known, once; frees the list. */
void attempts_take_up(struct state *s, struct attempts_kept *attempts,
                      const struct kept_host *host);

#endif
