/* Facts about the GPUs that the whole daemon needs, beside the ledger. */
#ifndef DAEMON_COMMON_CARD_FACTS_H
#define DAEMON_COMMON_CARD_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct card_facts {
    const char *sim_dir; /* of the simulated GPUs; NULL: real GPUs */
    int32_t mig_major;   /* major number of /dev/nvidia-caps; 0: no MIG, or unknown */
    bool renumbered;     /* GPU numbers differ from the driver's: jobs get UUIDs */
};

#endif
