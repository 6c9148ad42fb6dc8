/* Faults of simulated cards and their driver, for tests and for trying out. */
#ifndef GPU_SIM_FAULTS_H
#define GPU_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct err;

struct sim_faults {
    bool hang;
    bool die;
    bool error;
    bool silent_procs;
    bool no_caps;     /* caps are refused */
    uint64_t lost;    /* cards off the bus */
    uint64_t unread;  /* that the driver cannot read */
    uint64_t pending; /* with memory that waits for a reset */
    uint64_t worn;    /* with memory that cannot be put aside */
};

/* A line each, as "hang" or "lost 3"; sets what they say. text is cut into its lines.
 * ERR_USAGE. */
int sim_faults_parse(char *text, struct sim_faults *out, struct err *e);

#endif
