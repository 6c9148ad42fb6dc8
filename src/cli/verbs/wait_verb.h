/* What `submit --wait` shares with `wait`. */
#ifndef CLI_VERBS_WAIT_VERB_H
#define CLI_VERBS_WAIT_VERB_H

#include <jansson.h>

/* The highest exit status in the answer of the `wait` method. */
int wait_highest(const json_t *result);
/* Says on standard error how a job has ended, but for an exit code, which speaks for itself.
 * job: of the method "jobs". */
void wait_tell_end(const json_t *job);

#endif
