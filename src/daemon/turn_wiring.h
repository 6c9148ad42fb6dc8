/* The turn of berthd: the table of its parts, in the order in which they run. */
#ifndef DAEMON_TURN_WIRING_H
#define DAEMON_TURN_WIRING_H

struct daemon;

/* Creates d->inst.turn and attaches it to the loop. Call once all parts but the server exist.
 * after: called after each turn that was committed, and, once the daemon is about to exit,
 * after failed ones too. */
void turn_wire(struct daemon *d, void (*after)(struct daemon *));

#endif
