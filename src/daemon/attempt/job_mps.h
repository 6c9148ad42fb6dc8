/* Jobs as clients of MPS: which jobs are, their variables, and the keeper that runs their
 * user's control daemon. */
#ifndef DAEMON_ATTEMPT_JOB_MPS_H
#define DAEMON_ATTEMPT_JOB_MPS_H

#include <stdbool.h>

struct attempts;
struct buf;
struct err;
struct instance;
struct job;
struct jsonw;
struct mps_state;

/* The GPU on which the job's attempt is to be a client; -1: none. */
int mps_card_of(const struct instance *inst, const struct job *job);

/* Appends the MPS variables of the job. */
void mps_put(const struct instance *inst, const struct job *job, struct buf *out);
/* True if a captured variable belongs to another job's MPS. theirs: all captured variables. */
bool mps_is_stale(const struct instance *inst, const struct buf *theirs, const char *var);

/* Writes the key "mps" of a spec. */
void mps_write(const struct instance *inst, const struct job *job, struct jsonw *w);

/* Has a keeper forked, before the job's supervisor. Returns a descriptor, which the caller
 * closes once the supervisor is there; -1 with e. */
int mps_begin(struct attempts *a, const struct job *job, struct err *e);

/* The state reported by that GPU's keeper, or by the last one, whatever the settings are now.
 * False: there was none. */
bool mps_said(const struct instance *inst, int card, struct mps_state *out);

/* Checks whether the MPS program exists, and updates the ledger. */
void mps_look(struct attempts *a);
/* Repeats that check every few seconds, and starts a new keeper to clean up after one that
 * was killed. */
void mps_look_at_times(struct attempts *a);

#endif
