/* The turn of berthd: which parts have something to do in it, in their order. */
#ifndef DAEMON_TURN_WIRING_H
#define DAEMON_TURN_WIRING_H

struct daemon;

/* Makes d->inst.turn, in the loop, once there are all parts but the server. after: called
 * behind each turn that was saved, and, when the daemon is to leave, behind the others too. */
void turn_wire(struct daemon *d, void (*after)(struct daemon *));

#endif
