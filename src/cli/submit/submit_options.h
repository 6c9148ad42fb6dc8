/* The options of `submit`, derived from the table of attributes. */
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

/* Options about the submission, not the job. */
struct submit_words {
    bool parsable;
    bool wait;
    const char *sim;    /* borrowed */
    const char *models; /* borrowed; NULL: not given */
    char *cwd;          /* owned, absolute; folder of the submission; NULL: not known yet */
    bool dry_run;
    bool ignore_unsupported;
    /* For callers that print their own messages; borrowed; NULL in `berth submit`. */
    bool ends;           /* an interactive job ends when the caller does */
    int64_t *id;         /* receives the job's id */
    bool *left;          /* set if the user detaches from an interactive job */
    struct err *refused; /* receives the daemon's refusal, which is then not printed */
    json_t **plan;       /* with dry_run: file.plan's line, owned by the caller */
    struct env_choice env;
};

/* Applies options to *req (initialised by the caller) up to the command. OPT_DONE (r has the
 * command's words), or OPT_EXIT with r->status. page: the verb's, without options. */
int submit_read_options(struct opt_reader *r, struct cli *cli, const struct page *page,
                        int argc, char **argv, struct request *req, struct submit_words *words);

/* Reads the current time and the local clock. */
void submit_read_clock(struct when_clock *clock);

/* Checks the options against each other. 0, or the exit status. */
int submit_finish_request(struct request *req, const struct submit_words *words);

void submit_words_free(struct submit_words *w);

#endif
