/* The filter of `berth top`: words that must all match. "user:", "state:" and "gpu:" match
 * these fields; any other word is searched in the command and everything that a row shows. */
#ifndef CLI_TOP_TOP_FILTER_H
#define CLI_TOP_TOP_FILTER_H

#include <stdbool.h>

#include "cli/table/queue_rows.h"

struct buf;

bool top_filter_lets(const char *filter, const struct row *row);
/* True if each word can match something; else why describes the first that cannot. */
bool top_filter_check(const char *filter, struct buf *why);

#endif
