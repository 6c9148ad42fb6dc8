/* Why a job waits or why it ended, as `berth explain` says it. */
#ifndef CLI_VERBS_EXPLAIN_VERB_H
#define CLI_VERBS_EXPLAIN_VERB_H

#include <jansson.h>

struct buf;
struct term;

/* job: one of the answer to `explain`. Appends some lines. */
void explain_add(const struct term *term, struct buf *out, const json_t *job);

#endif
