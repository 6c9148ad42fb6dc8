/* Ends what a dead supervisor left behind. */
#ifndef SHEPHERD_ATTEMPT_SWEEP_H
#define SHEPHERD_ATTEMPT_SWEEP_H

/* KILLs every process of the attempt whose folder is descriptor 5, until none is left. Returns
 * the exit status: 0 if none is left, 1 if some do not end or could not be read. */
int sweep_run(void);

#endif
