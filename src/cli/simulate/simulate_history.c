/* Durations from a daemon's history: see simulate_history.h. A jobs file says shell text, so
 * only that is compared. */
#include "cli/simulate/simulate_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "base/search.h"
#include "cli/ask/connect.h"
#include "cli/ask/json_scan.h"
#include "wire/client.h"

enum { IN_ID, IN_STATE, IN_COMMAND, IN_RUN_MS, INS };

static const char *const in_fields[INS] = {"id", "state", "command", "run_ms"};

static void
take_row(void *arg, const struct scan_value *v)
{
    struct past_runs *p = arg;
    auto_buf struct buf command = BUF_INIT;
    int64_t run_ms = scan_int(&v[IN_RUN_MS], -1);
    if (run_ms < 0 || !scan_is(&v[IN_STATE], "COMPLETED"))
        return;
    p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
    scan_add(&command, &v[IN_COMMAND]);
    p->v[p->n++] = (struct past_run){buf_take(&command), scan_int(&v[IN_ID], 0), run_ms};
}

static int
compare_runs(const void *a, const void *b)
{
    const struct past_run *x = a, *y = b;
    int c = strcmp(x->command, y->command);
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

int
past_runs_ask(const struct cli *cli, struct past_runs *p, struct err *e)
{
    auto_client struct client *c = connect_daemon(cli, e);
    json_t *params = json_object(), *fields = json_array();
    const char *text;
    size_t len;
    *p = (struct past_runs){.n = 0};
    for (int i = 0; i < INS; i++)
        json_array_append_new(fields, json_string(in_fields[i]));
    json_object_set_new(params, "fields", fields);
    json_object_set_new(params, "ended", json_true());
    if (!c) {
        json_decref(params);
        return -1;
    }
    if (client_call_raw(c, "jobs", params, &text, &len, e) < 0)
        return -1;
    scan_rows(text, len, INS, take_row, p);
    if (p->n > 1)
        qsort(p->v, p->n, sizeof *p->v, compare_runs);
    return 0;
}

void
past_runs_free(struct past_runs *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].command);
    free(p->v);
    *p = (struct past_runs){.n = 0};
}

int64_t
past_runs_duration(const void *past, const struct request *r)
{
    const struct past_runs *p = past;
    if (!r->command)
        return 0;
    size_t behind = search_first(at, p->n, strcmp(p->v[at].command, r->command) <= 0);
    int64_t sum = 0, n = 0;
    for (; n < 2 && behind > 0 && strcmp(p->v[behind - 1].command, r->command) == 0; n++)
        sum += p->v[--behind].run_ms;
    if (n == 0)
        return 0;
    int64_t seconds = (sum / n + 999) / 1000;
    return seconds > 0 ? seconds : 1;
}
