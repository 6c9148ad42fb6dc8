/* The keeper of an MPS control daemon: one per user and GPU, forked by the nursery. */
#ifndef SHEPHERD_MPS_MPS_KEEPER_H
#define SHEPHERD_MPS_MPS_KEEPER_H

/* Expects descriptors as in sys/nursery_packets.h. Returns the exit status. */
int mps_keeper_run(void);

#endif
