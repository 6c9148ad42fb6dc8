/* Shared by `submit --wait` and `wait`. */
#ifndef CLI_VERBS_WAIT_VERB_H
#define CLI_VERBS_WAIT_VERB_H

#include <jansson.h>

/* The highest exit status in an answer to the `wait` method. */
int wait_highest(const json_t *result);
/* Prints to standard error how a job ended, unless it ended by itself with an exit code. job:
 * from the method "jobs". */
void wait_tell_end(const json_t *job);

#endif
