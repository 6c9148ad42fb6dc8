/* The sbatch options with which the daemon sends a job. */
#ifndef SLURM_SENT_OPTIONS_H
#define SLURM_SENT_OPTIONS_H

#include <stdbool.h>

struct buf;
struct config;
struct request;

/* Appends the options, each NUL-terminated. Jobs with equal options may be sent as one array,
 * which has only one name: without with_name that is Berth's, whatever the job's name. */
void slurm_add_options(const struct request *r, bool with_name, const struct config *c,
                       struct buf *out);

#endif
