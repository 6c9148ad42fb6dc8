/* --sim against the cards of a daemon that runs already. */
#ifndef CLI_ASK_SIM_MATCH_H
#define CLI_ASK_SIM_MATCH_H

struct cli;
struct client;
struct daemon_args;
struct err;

/* connect_or_start, and ERR_REFUSED where --sim asks for cards that the daemon which answers
 * does not have: its jobs would run on others than were asked for. */
struct client *sim_match_connect(const struct cli *cli, const struct daemon_args *args,
                                 struct err *e);

#endif
