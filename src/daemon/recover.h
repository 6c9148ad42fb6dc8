/* Taking up where a daemon before this one left off. */
#ifndef DAEMON_RECOVER_H
#define DAEMON_RECOVER_H

struct attempts;
struct attempts_kept;
struct cards;
struct err;
struct instance;
struct slurm;

struct recovery {
    struct instance *inst; /* borrowed, as are the parts */
    struct attempts *attempts;
    struct cards *cards;
    struct slurm *slurm;
    struct attempts_kept *kept; /* between the two steps */
};

/* Reads every job that has not ended into the table. Before the cards are known. */
int recover_load(struct recovery *r, struct err *e);

/* With the cards known: books what runs, connects to living shepherds, settles the rest, and
 * removes folders that belong to nothing. */
int recover_attempts(struct recovery *r, struct err *e);

#endif
