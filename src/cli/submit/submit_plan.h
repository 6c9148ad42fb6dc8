/* `berth submit --dry-run`. */
#ifndef CLI_SUBMIT_SUBMIT_PLAN_H
#define CLI_SUBMIT_SUBMIT_PLAN_H

struct cli;
struct request;
struct submit_words;

/* Prints the request and what would happen to it now; queues nothing. Returns the exit
 * status. */
int submit_plan(struct cli *cli, const struct request *req, const struct submit_words *words);

#endif
