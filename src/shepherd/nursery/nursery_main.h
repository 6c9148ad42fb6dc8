/* The nursery: one small process from which every shepherd is forked. */
#ifndef SHEPHERD_NURSERY_NURSERY_MAIN_H
#define SHEPHERD_NURSERY_NURSERY_MAIN_H

/* Serves the socket at descriptor 3, or the one that listens at socket_path, until it closes
 * and all children have ended; the exit status. name: of the folder for groups of jobs,
 * "berth-" and eight hex digits (what follows them is left out); then it begins with a packet
 * that says what can be enforced on jobs here. NULL: without. */
int nursery_run(const char *name, const char *socket_path);

#endif
