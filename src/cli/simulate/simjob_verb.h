/* `berth simjob`: an imitation of a GPU program for simulated GPUs. */
#ifndef CLI_SIMULATE_SIMJOB_VERB_H
#define CLI_SIMULATE_SIMJOB_VERB_H

/* argv[0] is the verb. Returns the exit status of the program. */
int cmd_simjob(int argc, char **argv);

#endif
