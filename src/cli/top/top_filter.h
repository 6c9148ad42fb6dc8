/* The filter of `berth top`: words, of which each has to match. "user:", "state:" and "gpu:"
 * say of what; any other is looked for in the command and all that a row shows of it. */
#ifndef CLI_TOP_TOP_FILTER_H
#define CLI_TOP_TOP_FILTER_H

#include <stdbool.h>

#include "cli/table/queue_rows.h"

struct buf;

bool top_filter_lets(const char *filter, const struct row *row);
/* Whether each word of it can match something; else words about the first that cannot. */
bool top_filter_check(const char *filter, struct buf *why);

#endif
