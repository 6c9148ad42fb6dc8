/* The nursery: one small process that forks every supervisor. */
#ifndef SHEPHERD_NURSERY_NURSERY_MAIN_H
#define SHEPHERD_NURSERY_NURSERY_MAIN_H

/* Serves the socket at descriptor 3, or connects to the one at socket_path, until it closes
 * and all children have ended. Returns the exit status. name: of the folder for groups of
 * jobs, "berth-" and eight hex digits (the rest is ignored); then its first packet says what
 * can be enforced on jobs here. NULL: without groups. */
int nursery_run(const char *name, const char *socket_path);

#endif
