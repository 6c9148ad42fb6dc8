/* The daemon's log, and its level. */
#ifndef CLI_VERBS_DAEMON_LOGS_H
#define CLI_VERBS_DAEMON_LOGS_H

#include <stdbool.h>
#include <stdint.h>

struct cli;

/* Both return an exit status. tail: print only the last tail lines; 0: all. level NULL: only
 * print the present level. */
int daemon_logs(struct cli *cli, bool following, int64_t tail);
int daemon_log_level(struct cli *cli, const char *level);

#endif
