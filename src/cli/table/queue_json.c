/* `berth queue --json`: all details of any number of jobs. An answer of the daemon is a line
 * of bounded length, so this requests the ids first, then some thousand jobs at a time, and
 * prints each piece before it requests the next. */
#include "cli/table/queue_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "wire/client.h"
#include "wire/json_text.h"

#define PIECE 5000 /* jobs; at ten KiB each, they still fit */

struct wanted {
    json_int_t id;
    bool printed;
};

static int
compare_ids(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* An id may select more than its own job (an array's also selects its tasks): prints each of
 * the jobs that belong to this piece, once. */
static void
add_jobs(const json_t *jobs, struct wanted *piece, size_t n, struct buf *out, bool *any)
{
    size_t i;
    const json_t *job;
    qsort(piece, n, sizeof *piece, compare_ids);
    json_array_foreach(jobs, i, job)
    {
        const struct wanted key = {.id = json_integer_value(json_object_get(job, "id"))};
        struct wanted *w = bsearch(&key, piece, n, sizeof *piece, compare_ids);
        if (!w || w->printed)
            continue;
        w->printed = true;
        auto_free char *text = json_dumps(job, JSON_AS_SENT);
        buf_adds(out, *any ? "," : "");
        text_add_json(out, text ? text : "null", text ? strlen(text) : 4);
        *any = true;
    }
}

static int
ask_piece(struct client *c, const json_t *rows, size_t from, size_t n, struct wanted *piece,
          json_t **result, struct err *e)
{
    json_t *select = json_array();
    for (size_t i = 0; i < n; i++) {
        char word[24];
        piece[i] = (struct wanted){
            .id = json_integer_value(json_array_get(json_array_get(rows, from + i), 0))};
        snprintf(word, sizeof word, "%lld", (long long)piece[i].id);
        json_array_append_new(select, json_string(word));
    }
    return client_call(c, "jobs", json_pack("{s:o,s:s}", "select", select, "order", "turn"),
                       result, e);
}

/* Prints the rest of the output, piece by piece. */
static int
print_pieces(struct client *c, const json_t *rows, struct err *e)
{
    struct wanted piece[PIECE];
    size_t n = json_array_size(rows);
    bool any = false;
    for (size_t from = 0; from < n; from += PIECE) {
        auto_buf struct buf out = BUF_INIT;
        auto_json json_t *result = NULL;
        size_t part = n - from < PIECE ? n - from : PIECE;
        if (ask_piece(c, rows, from, part, piece, &result, e) < 0)
            return -1;
        add_jobs(json_object_get(result, "jobs"), piece, part, &out, &any);
        int status = cli_put(&out);
        if (status != 0)
            return status;
    }
    return 0;
}

static int
print_many(struct client *c, const json_t *rows, struct err *e)
{
    auto_buf struct buf head = BUF_INIT;
    auto_buf struct buf foot = BUF_INIT;
    buf_adds(&head, "{\"version\":1,\"jobs\":[");
    buf_adds(&foot, "]}\n");
    int status = cli_put(&head);
    if (status == 0)
        status = print_pieces(c, rows, e);
    return status == 0 ? cli_put(&foot) : status;
}

int
queue_json_print(const struct cli *cli, json_t *params)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);
    auto_json json_t *numbers = NULL;
    auto_json json_t *result = NULL;
    auto_json json_t *all = params;
    json_t *first = json_deep_copy(params);

    json_object_set_new(first, "fields", json_pack("[s]", "id"));
    if (!c) {
        json_decref(first);
        return cli_fail(&e);
    }
    if (client_call(c, "jobs", first, &numbers, &e) < 0)
        return cli_fail(&e);
    const json_t *rows = json_object_get(numbers, "rows");
    if (json_array_size(rows) > PIECE) {
        int status = print_many(c, rows, &e);
        return status < 0 ? cli_fail(&e) : status;
    }
    if (client_call(c, "jobs", json_incref(all), &result, &e) < 0)
        return cli_fail(&e);
    json_object_set_new(result, "version", json_integer(1));
    return cli_put_json(result);
}
