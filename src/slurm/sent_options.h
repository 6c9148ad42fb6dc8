/* The options of sbatch with which the daemon sends a job. */
#ifndef SLURM_SENT_OPTIONS_H
#define SLURM_SENT_OPTIONS_H

struct buf;
struct config;
struct request;

/* Appends them, each with its NUL. Jobs with equal options may go as one array. */
void slurm_add_options(const struct request *r, const struct config *c, struct buf *out);

#endif
