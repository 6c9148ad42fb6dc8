/* Loads the jobs that had not ended when the previous daemon exited, and, once the GPUs are
 * known, maps their attempts to them. */
#ifndef DAEMON_TURN_JOBS_KEPT_H
#define DAEMON_TURN_JOBS_KEPT_H

#include <stddef.h>

struct attempts_kept;
struct err;
struct job;
struct state;
struct store;

/* What loading needs from other parts of the daemon. */
struct kept_host {
    void *arg;
    /* Makes a key that no Slurm job has, for an attempt whose row, and with it its key,
     * is lost. */
    void (*make_key)(char *key, size_t size);
    /* A running job's GPU is no longer present. It has been added to the ledger with only
     * its UUID. */
    void (*card_missing)(void *arg, int card);
    /* The attempt's resources are booked: find out what has become of it, and post that. */
    void (*take_up)(void *arg, struct job *job);
};

/* Call before the GPUs are known. *attempts: the attempts under way, for attempts_take_up. */
int jobs_load(struct state *s, struct store *store, const struct kept_host *host,
              struct attempts_kept **attempts, struct err *e);

/* Call once, when the GPUs are known; frees the list. */
void attempts_take_up(struct state *s, struct attempts_kept *attempts,
                      const struct kept_host *host);

#endif
