/* From a request to a job in the queue, for submit and shell. */
#ifndef CLI_SUBMIT_SUBMIT_VERB_H
#define CLI_SUBMIT_SUBMIT_VERB_H

#include "base/request.h"
#include "cli/submit/submit_options.h"

struct cli;

struct submission {
    struct request req;
    struct submit_words words;
};

/* Checks the request, completes it and queues it (or says what would become of it), and stays
 * with it where that was asked. The exit status. */
int submit_send(struct cli *cli, struct submission *s);
void submission_free(struct submission *s);

#endif
