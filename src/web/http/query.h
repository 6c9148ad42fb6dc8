/* What visitors can ask: each kind of question, what of it goes to berthd, and how the
 * answers become one reply. A plain value, so that the same question of many visitors is
 * asked once (cache.h). */
#ifndef WEB_HTTP_QUERY_H
#define WEB_HTTP_QUERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct reply;

enum query_kind {
    QUERY_OVERVIEW, /* what the first page shows, in one */
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
#define QUERY_LIST      200 /* lines of a list, unless more are requested */
#define QUERY_LIST_MAX  10000
#define QUERY_LOG_MAX   ((int64_t)1 << 20)

struct query {
    enum query_kind kind;
    int64_t job;
    int64_t limit;
    int64_t before_id; /* these: 0 when not asked */
    int64_t since_us;
    int64_t until_us;
    int64_t points;
    int64_t attempt;
    int64_t bytes; /* of a log */
    char user[64];
    char state[32];
    char search[128];
};

/* One question to berthd. */
struct query_part {
    const char *method;
    json_t *params; /* to be stolen */
    bool optional;  /* a daemon that cannot answer it leaves null in its place */
};

/* Takes one argument of the URL; one of no meaning here is passed over. -1: of no use. */
int query_set(struct query *q, const char *name, const char *value, struct err *e);

/* Two queries with the same key have the same answer. */
void query_key(const struct query *q, struct buf *out);
int query_parts(const struct query *q, struct query_part out[QUERY_PARTS_MAX]);
/* How long an answer stays good enough. */
int64_t query_ttl_us(const struct query *q);
/* results: as many as there are parts, borrowed; NULL where an optional one failed. */
struct reply *query_reply(const struct query *q, json_t *const *results);

#endif
