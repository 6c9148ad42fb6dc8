/* Pages for browsers without scripts: the same facts in plain tables. */
#ifndef WEB_PAGES_PLAIN_H
#define WEB_PAGES_PLAIN_H

struct buf;
struct query;
struct reply;

void plain_add(struct buf *out, const struct query *q, const struct reply *data);

#endif
