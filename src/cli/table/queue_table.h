/* The table of the queue: for `berth queue` and bare `berth`. */
#ifndef CLI_TABLE_QUEUE_TABLE_H
#define CLI_TABLE_QUEUE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct cli;
struct client;
struct err;
struct term;

/* How to show jobs. All fields may be zero. */
struct queue_view {
    const char *format;  /* comma-separated column names; NULL: the usual ones */
    const char *usual;   /* the usual columns; NULL: the queue's */
    const char *sort;    /* a column's name; a leading - sorts the largest first */
    bool no_header;      /* rows only, for scripts */
    bool past;           /* ended jobs, page by page */
    int64_t limit;       /* if past: the newest N; 0: all */
    const char *nothing; /* printed on a terminal if there are no jobs */
    const char *user;    /* the user in params, to be named if there are no jobs */
    uint64_t gpus;       /* likewise, the GPUs in params; 0: none */
};

/* Requests the jobs that params (stolen) select and prints them. Returns the exit status. */
int queue_table_print(const struct cli *cli, json_t *params, const struct queue_view *view);

/* The same over an open connection, into a buffer. *n: the number of jobs. 0 or -1. */
int queue_table_add(struct client *c, json_t *params, const struct queue_view *view,
                    const struct term *term, struct buf *out, size_t *n, struct err *e);

#endif
