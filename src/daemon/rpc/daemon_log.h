/* The daemon's log: where it goes, and the settings that it obeys. */
#ifndef DAEMON_RPC_DAEMON_LOG_H
#define DAEMON_RPC_DAEMON_LOG_H

#include <stdbool.h>

struct config;
struct err;

/* to_file: to the file at path (else to the journal, where stderr leads there, else to
 * stderr). */
int logging_open(const char *path, bool to_file, struct err *e);

/* What the settings say of the log. */
void logging_apply(const struct config *c);

const char *logging_target(void); /* "file", "journal" or "stderr" */

#endif
