/* Faults of simulated GPUs and their driver, for tests and experiments. */
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
    bool no_caps;     /* setting caps fails */
    uint64_t lost;    /* GPUs off the bus */
    uint64_t unread;  /* GPUs that the driver cannot read */
    uint64_t pending; /* GPUs with memory to be retired at the next reset */
    uint64_t worn;    /* GPUs with memory that cannot be retired */
};

/* Parses one fault per line, such as "hang" or "lost 3". Modifies text. -1 with ERR_USAGE. */
int sim_faults_parse(char *text, struct sim_faults *out, struct err *e);

#endif
