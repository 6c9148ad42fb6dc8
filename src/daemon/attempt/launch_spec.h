/* What an attempt's shepherd is to do. */
#ifndef DAEMON_ATTEMPT_LAUNCH_SPEC_H
#define DAEMON_ATTEMPT_LAUNCH_SPEC_H

struct attempts;
struct err;
struct job;

/* Opens the attempt's folder and its lock, which is held from then on (but not where nodes see
 * it), and writes into it what
 * is to run. Both are the caller's to close, also when this fails (-1: not opened). */
int spec_fill_folder(struct attempts *a, const struct job *job, int *dir, int *lock,
                     struct err *e);

#endif
