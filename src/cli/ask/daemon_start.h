/* Starting a daemon and having a connection to it. */
#ifndef CLI_ASK_DAEMON_START_H
#define CLI_ASK_DAEMON_START_H

#include <stdbool.h>

#include "cli/ask/connect.h"

struct places;

/* Starts a daemon for these places, or comes to one that somebody else starts at the same
 * moment; *started (may be NULL) becomes true when it was this call's. args: NULL for nothing
 * special. NULL with e: why it did not start. */
struct client *daemon_start(const struct places *p, const struct daemon_args *args,
                            bool *started, struct err *e);

/* Connects to the socket at path, with the patience that every connection has. */
struct client *connect_at(const char *path, struct err *e);

#endif
