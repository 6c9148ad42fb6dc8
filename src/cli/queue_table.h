/* The queue as a table: for `berth queue` and bare `berth`. */
#ifndef CLI_QUEUE_TABLE_H
#define CLI_QUEUE_TABLE_H

#include <jansson.h>

struct buf;
struct cli;
struct client;
struct err;
struct term;

/* Asks for the jobs that params (stolen) select and prints them. format: column names with
 * commas, NULL: the usual ones. Returns the exit status. */
int queue_table_print(const struct cli *cli, json_t *params, const char *format);

/* The same on a connection at hand, into a buffer. *n: how many jobs. 0 or -1. */
int queue_table_add(struct client *c, json_t *params, const char *format,
                    const struct term *term, struct buf *out, size_t *n, struct err *e);

#endif
