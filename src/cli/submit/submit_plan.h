/* `berth submit --dry-run`. */
#ifndef CLI_SUBMIT_SUBMIT_PLAN_H
#define CLI_SUBMIT_SUBMIT_PLAN_H

struct cli;
struct request;
struct submit_words;

/* Says what is asked and what would become of it now; nothing is queued. The exit status. */
int submit_plan(struct cli *cli, const struct request *req, const struct submit_words *words);

#endif
