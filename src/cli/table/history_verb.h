/* Jobs that have ended as a workload that `berth simulate` reads. */
#ifndef CLI_TABLE_HISTORY_VERB_H
#define CLI_TABLE_HISTORY_VERB_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* Appends the CSV of the newest limit (0: all) jobs that params (borrowed) select, in the order
 * of their arrival. *left_out: how many ran without a GPU or never, and are not in it. 0 or
 * -1. */
int history_csv_add(struct client *c, json_t *params, int64_t limit, struct buf *out,
                    size_t *left_out, struct err *e);

#endif
