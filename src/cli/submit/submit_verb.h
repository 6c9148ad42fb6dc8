/* Queues a request, for submit and shell. */
#ifndef CLI_SUBMIT_SUBMIT_VERB_H
#define CLI_SUBMIT_SUBMIT_VERB_H

#include "base/request.h"
#include "cli/submit/submit_options.h"

struct cli;

struct submission {
    struct request req;
    struct submit_words words;
};

/* Checks, completes and queues the request (or prints what would happen to it), and waits for
 * or attaches to the job if requested. Returns the exit status. */
int submit_send(struct cli *cli, struct submission *s);
void submission_free(struct submission *s);

#endif
