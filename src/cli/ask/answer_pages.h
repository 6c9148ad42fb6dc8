/* The history page by page, put together again: the daemon looks through a piece of it for one
 * request only. */
#ifndef CLI_ASK_ANSWER_PAGES_H
#define CLI_ASK_ANSWER_PAGES_H

#include <jansson.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* Asks for the newest `limit` ended jobs (0: all) that params (stolen) select, and appends
 * {"jobs":[...]}, or {"rows":[...]} where params have fields: the oldest first. 0 or -1. */
int pages_ask(struct client *c, json_t *params, int64_t limit, struct buf *out, struct err *e);

#endif
