/* The daemon's log: its destination, and the settings that apply to it. */
#ifndef DAEMON_RPC_DAEMON_LOG_H
#define DAEMON_RPC_DAEMON_LOG_H

#include <stdbool.h>

struct config;
struct err;

/* to_file: write to the file at path. Otherwise to the journal if stderr leads there, else to
 * stderr. */
int logging_open(const char *path, bool to_file, struct err *e);

/* Applies the log settings. */
void logging_apply(const struct config *c);

const char *logging_target(void); /* "file", "journal" or "stderr" */

#endif
