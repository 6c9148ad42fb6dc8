/* Starts a daemon and connects to it. */
#ifndef CLI_ASK_DAEMON_START_H
#define CLI_ASK_DAEMON_START_H

#include <stdbool.h>

#include "cli/ask/connect.h"

struct places;

/* Starts a daemon for these places, or connects to one that another process starts at the same
 * moment; sets *started (may be NULL) to true if this call started it. args: NULL for none.
 * NULL with e: why it did not start. */
struct client *daemon_start(const struct places *p, const struct daemon_args *args,
                            bool *started, struct err *e);

#endif
