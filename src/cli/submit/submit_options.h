/* The options of `submit`, made from the table of attributes. */
#ifndef CLI_SUBMIT_SUBMIT_OPTIONS_H
#define CLI_SUBMIT_SUBMIT_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/ask/submit_env.h"

struct cli;
struct err;
struct opt_reader;
struct page;
struct request;
struct when_clock;

/* What is about the submission, not the job. */
struct submit_words {
    bool parsable;
    bool wait;
    const char *sim;    /* borrowed */
    const char *models; /* borrowed; NULL: not said */
    char *cwd;          /* owned, absolute; where it is submitted; NULL: not known yet */
    bool dry_run;
    bool ignore_unsupported;
    /* For callers with words of their own; borrowed, and NULL for those of `berth submit`. */
    bool ends;           /* an interactive job ends when the caller does */
    int64_t *id;         /* is set to the job's */
    bool *left;          /* is set when the user leaves an interactive job, which goes on */
    struct err *refused; /* is what the daemon refuses it for, which is not said then */
    json_t **plan;       /* with dry_run: the line of file.plan's answer, the caller's */
    struct env_choice env;
};

/* Lays options over *req (begun by the caller) until the command begins. OPT_DONE (r has the
 * command's words), or OPT_EXIT with r->status. page: the verb's, without options. */
int submit_read_options(struct opt_reader *r, struct cli *cli, const struct page *page,
                        int argc, char **argv, struct request *req, struct submit_words *words);

/* Now, and what the local clock shows. */
void submit_read_clock(struct when_clock *clock);

/* What no single option can know. 0, or the exit status. */
int submit_finish_request(struct request *req, const struct submit_words *words);

void submit_words_free(struct submit_words *w);

#endif
