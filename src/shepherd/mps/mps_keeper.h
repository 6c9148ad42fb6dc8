/* The keeper of a control daemon of MPS: one for a user on a card, forked by the nursery. */
#ifndef SHEPHERD_MPS_MPS_KEEPER_H
#define SHEPHERD_MPS_MPS_KEEPER_H

/* Descriptors as sys/nursery_packets.h says. Its exit status. */
int mps_keeper_run(void);

#endif
