/* The changes of a turn, for the parts that do not wait for its commit. */
#ifndef DAEMON_TURN_PASS_ON_H
#define DAEMON_TURN_PASS_ON_H

struct daemon;

/* All that have come since the last time, each once. */
void pass_on_changes(struct daemon *d);

#endif
