/* Ended jobs as a workload for `berth simulate`. */
#ifndef CLI_TABLE_HISTORY_VERB_H
#define CLI_TABLE_HISTORY_VERB_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* Appends as CSV the newest limit (0: all) jobs that params (borrowed) select, in order of
 * arrival. *left_out: the number omitted because they ran without a GPU or never. 0 or -1. */
int history_csv_add(struct client *c, json_t *params, int64_t limit, struct buf *out,
                    size_t *left_out, struct err *e);

#endif
