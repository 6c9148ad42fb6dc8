/* Queries of visitors: each kind, the requests to berthd that it needs, and how their answers
 * form one reply. A query is a plain value, so that equal queries of many visitors are sent
 * once (cache.h). */
#ifndef WEB_HTTP_QUERY_H
#define WEB_HTTP_QUERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct reply;

enum query_kind {
    QUERY_OVERVIEW, /* everything on the first page, in one query */
    QUERY_STATUS,
    QUERY_GPUS,
    QUERY_QUEUE,
    QUERY_JOB,
    QUERY_JOB_SERIES,
    QUERY_SERIES,
    QUERY_HISTORY,
    QUERY_REPORT,
    QUERY_HEALTH,
    QUERY_METRICS,
    QUERY_KINDS
};

#define QUERY_PARTS_MAX 5
#define QUERY_LIST      200 /* default number of rows */
#define QUERY_LIST_MAX  10000
#define QUERY_LOG_MAX   ((int64_t)1 << 20)

struct query {
    enum query_kind kind;
    int64_t job;
    int64_t limit;
    int64_t before_id; /* 0 if not given, as for the fields below */
    int64_t since_us;
    int64_t until_us;
    int64_t points;
    int64_t attempt;
    int64_t bytes; /* of a log */
    char user[64];
    char state[32];
    char search[128];
};

/* One request to berthd. */
struct query_part {
    const char *method;
    json_t *params; /* the caller takes it over */
    bool optional;  /* if the daemon cannot answer it, its result is null */
};

/* Sets one argument from the URL and ignores unknown names. -1: invalid value. */
int query_set(struct query *q, const char *name, const char *value, struct err *e);

/* Two queries with the same key have the same answer. */
void query_key(const struct query *q, struct buf *out);
int query_parts(const struct query *q, struct query_part out[QUERY_PARTS_MAX]);
/* How long an answer stays fresh. */
int64_t query_ttl_us(const struct query *q);
/* results: one per part, borrowed; NULL where an optional part failed. */
struct reply *query_reply(const struct query *q, json_t *const *results);

#endif
