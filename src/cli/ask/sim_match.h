/* Compares --sim with the GPUs of a running daemon. */
#ifndef CLI_ASK_SIM_MATCH_H
#define CLI_ASK_SIM_MATCH_H

struct cli;
struct client;
struct daemon_args;
struct err;

/* connect_or_start, with ERR_REFUSED if the daemon does not have the GPUs that --sim requests:
 * jobs would run on other GPUs than intended. */
struct client *sim_match_connect(const struct cli *cli, const struct daemon_args *args,
                                 struct err *e);

#endif
