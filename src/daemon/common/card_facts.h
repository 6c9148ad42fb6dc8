/* What the whole daemon knows of the GPUs together, beside the ledger. */
#ifndef DAEMON_COMMON_CARD_FACTS_H
#define DAEMON_COMMON_CARD_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct card_facts {
    const char *sim_dir; /* simulated cards and what goes with them; NULL: real ones */
    int32_t mig_major;   /* of /dev/nvidia-caps; 0: no GPU is divided, or not known */
    bool renumbered;     /* card numbers here differ from the driver's: jobs get UUIDs */
};

#endif
