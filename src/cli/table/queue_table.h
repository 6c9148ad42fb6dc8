/* The queue as a table: for `berth queue` and bare `berth`. */
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

/* How jobs are shown. All may be NULL. */
struct queue_view {
    const char *format;  /* column names with commas; NULL: the usual ones */
    const char *usual;   /* those; NULL: the queue's */
    const char *sort;    /* a column's name, with - in front the largest first */
    bool no_header;      /* rows only, for scripts */
    bool past;           /* ended jobs, page by page */
    int64_t limit;       /* then: the newest N; 0: all */
    const char *nothing; /* what to say on a terminal when there are none */
    const char *user;    /* what params restrict the jobs to, to be named when there are none */
    uint64_t gpus;       /* the same; 0: nothing */
};

/* Asks for the jobs that params (stolen) select and prints them. Returns the exit status. */
int queue_table_print(const struct cli *cli, json_t *params, const struct queue_view *view);

/* The same on a connection at hand, into a buffer. *n: how many jobs. 0 or -1. */
int queue_table_add(struct client *c, json_t *params, const struct queue_view *view,
                    const struct term *term, struct buf *out, size_t *n, struct err *e);

#endif
