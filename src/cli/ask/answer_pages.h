/* Fetches the history in pages and joins them, as the daemon searches only a part of the
 * history per request. */
#ifndef CLI_ASK_ANSWER_PAGES_H
#define CLI_ASK_ANSWER_PAGES_H

#include <jansson.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* Fetches the newest `limit` ended jobs (0: all) that params (stolen) select, and appends
 * {"jobs":[...]}, or {"rows":[...]} if params have fields: oldest first. 0 or -1. */
int pages_ask(struct client *c, json_t *params, int64_t limit, struct buf *out, struct err *e);

#endif
