/* Recovery: takes over the jobs and attempts of the previous daemon. */
#ifndef DAEMON_RECOVER_H
#define DAEMON_RECOVER_H

struct attempts;
struct attempts_kept;
struct cards;
struct err;
struct instance;
struct slurm;

struct recovery {
    struct instance *inst; /* borrowed, like the parts below */
    struct attempts *attempts;
    struct cards *cards;
    struct slurm *slurm;
    struct attempts_kept *kept; /* from recover_load to recover_attempts */
};

/* Loads every job that has not ended into the table. Call before the GPUs are known. */
int recover_load(struct recovery *r, struct err *e);

/* Call once the GPUs are known: books running attempts in the ledger, connects to living
 * supervisors, settles the other attempts, and removes orphaned folders. */
int recover_attempts(struct recovery *r, struct err *e);

#endif
