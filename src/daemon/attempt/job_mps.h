/* Jobs as clients of MPS: which of them are, what they are told, and that somebody keeps their
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

/* The card on which its attempt is to be a client; -1: it is none. */
int mps_card_of(const struct instance *inst, const struct job *job);

/* Its variables. */
void mps_put(const struct instance *inst, const struct job *job, struct buf *out);
/* Whether a captured variable is of another job's MPS; theirs: all that were captured. */
bool mps_is_stale(const struct instance *inst, const struct buf *theirs, const char *var);

/* The key "mps" of a spec. */
void mps_write(const struct instance *inst, const struct job *job, struct jsonw *w);

/* Has a keeper forked, before the job's supervisor is. A descriptor, the caller's, to be closed
 * once that is there; -1. */
int mps_begin(struct attempts *a, const struct job *job, struct err *e);

/* What that card's keeper says, or the last one said, whatever the settings say by now. False:
 * there was none. */
bool mps_said(const struct instance *inst, int card, struct mps_state *out);

/* Looks whether the program is there, and tells the ledger. */
void mps_look(struct attempts *a);
/* That every few seconds, and whether a keeper was killed: then another looks after what it has
 * left. */
void mps_look_at_times(struct attempts *a);

#endif
