/* Dependencies that can no longer be met. */
#ifndef COMPAT_SLURM_SLURM_DEPEND_H
#define COMPAT_SLURM_SLURM_DEPEND_H

#include <stdbool.h>

struct request;

/* Whether a job that r waits for has ended in another way than it must; says which, unless
 * quiet. */
bool slurm_cannot_start(const struct request *r, bool quiet);

/* Takes out the jobs to wait for that are not known, with a word: Slurm counts those that it
 * has forgotten as ended well. Whether there were any. */
bool slurm_drop_unknown(struct request *r, bool quiet);

#endif
