/* `berth simjob`: a pretend GPU program for simulated cards. */
#ifndef CLI_SIMJOB_H
#define CLI_SIMJOB_H

/* argv[0] is the verb. Returns the exit status of the program. */
int cmd_simjob(int argc, char **argv);

#endif
