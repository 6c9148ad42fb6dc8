/* Jobs with `on: slurm`: what of their attributes cannot be had there. */
#ifndef SPEC_SLURM_ATTR_SLURM_H
#define SPEC_SLURM_ATTR_SLURM_H

struct err;
struct request;

/* ERR_USAGE where the request asks for what cannot be had on a cluster. */
int slurm_check(const struct request *r, struct err *e);

#endif
