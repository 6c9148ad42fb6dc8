/* The options of sbatch with which the daemon sends a job. */
#ifndef SLURM_SENT_OPTIONS_H
#define SLURM_SENT_OPTIONS_H

#include <stdbool.h>

struct buf;
struct config;
struct request;

/* Appends them, each with its NUL. Jobs with equal options may go as one array, which has one
 * name: without with_name it is ours, whatever the job's is. */
void slurm_add_options(const struct request *r, bool with_name, const struct config *c,
                       struct buf *out);

#endif
