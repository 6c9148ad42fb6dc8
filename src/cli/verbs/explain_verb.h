/* Explains why a job waits or why it ended, for `berth explain`. */
#ifndef CLI_VERBS_EXPLAIN_VERB_H
#define CLI_VERBS_EXPLAIN_VERB_H

#include <jansson.h>

struct buf;
struct term;

/* job: an element of the answer to `explain`. Appends some lines. */
void explain_add(const struct term *term, struct buf *out, const json_t *job);

#endif
