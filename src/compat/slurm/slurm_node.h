/* This machine as Slurm's one node. */
#ifndef COMPAT_SLURM_SLURM_NODE_H
#define COMPAT_SLURM_SLURM_NODE_H

#include <stdint.h>

struct client;
struct err;

struct slurm_machine {
    const char *state, *code; /* "mixed", "mix" */
    int cpus, cpus_used;
    int64_t mem_mib, mem_used_mib, mem_free_mib;
    int gpus, gpus_used;
    int jobs;
    char reason[128]; /* why nothing can start; "": something can */
    double load;
    int64_t booted_us, started_us; /* start of the machine, of the daemon */
};

/* Query the machine: its GPUs, and the resources of its jobs. -1 with e. */
int slurm_machine_ask(struct client *c, struct slurm_machine *out, struct err *e);

#endif
