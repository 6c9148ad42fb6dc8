/* What the daemon says of itself, and how much. */
#ifndef CLI_VERBS_DAEMON_LOGS_H
#define CLI_VERBS_DAEMON_LOGS_H

#include <stdbool.h>
#include <stdint.h>

struct cli;

/* Both return an exit status. tail: only the last so many lines; 0: all. level NULL: only
 * asks. */
int daemon_logs(struct cli *cli, bool following, int64_t tail);
int daemon_log_level(struct cli *cli, const char *level);

#endif
