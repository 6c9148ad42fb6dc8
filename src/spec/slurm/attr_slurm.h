/* Attributes that jobs with `on: slurm` cannot have. */
#ifndef SPEC_SLURM_ATTR_SLURM_H
#define SPEC_SLURM_ATTR_SLURM_H

struct err;
struct request;

/* ERR_USAGE if the request needs something that a cluster cannot provide. */
int slurm_check(const struct request *r, struct err *e);

#endif
