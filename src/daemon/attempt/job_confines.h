/* Within what a job, and what acts for it, is kept: groups of processes, cards, accounts. */
#ifndef DAEMON_ATTEMPT_JOB_CONFINES_H
#define DAEMON_ATTEMPT_JOB_CONFINES_H

#include <stdbool.h>

struct attempts;
struct instance;
struct job;
struct jsonw;

/* By which rules the account is judged before a process becomes its user
 * (shepherd/begin/account_rules.h), and which rights it can never get: members of the object
 * that is being written. */
void confines_write_account(const struct instance *inst, struct jsonw *w);

/* The groups that something of the job's is to run in, with its limits and the cards that it
 * may open, as a spec or an order has them. name: of the groups; NULL: those of the attempt. */
void confines_write_groups(const struct attempts *a, const struct job *job, const char *name,
                           struct jsonw *w);

/* The CPUs that its attempt is bound to, as a member of the spec that is being written. */
void confines_write_cpus(const struct attempts *a, const struct job *job, struct jsonw *w);

/* Whether a job of now can open no cards but its own. */
bool confines_devices(const struct attempts *a);

/* Words about a limit of memory that the job asks for and that nothing here enforces; NULL:
 * there is none. The caller frees. */
char *confines_unenforced(const struct attempts *a, const struct job *job);

#endif
