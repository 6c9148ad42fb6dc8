/* Pages start with the newest jobs, while the jobs of a page are oldest first: pages are
 * stored and then written in reverse. Jobs are copied without being parsed. See
 * answer_pages.h. */
#include "cli/ask/answer_pages.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/json_scan.h"
#include "wire/client.h"

#define PAGE_MAX 1000 /* the daemon's limit */

struct pages {
    struct buf *v; /* each page's text between the brackets */
    size_t n, cap;
};

static void
pages_free(struct pages *p)
{
    for (size_t i = 0; i < p->n; i++)
        buf_free(&p->v[i]);
    free(p->v);
}

static int64_t
count_items(const struct scan_value *list)
{
    struct scan at = {list->text, list->text + list->len};
    struct scan_value item;
    int64_t n = 0;

    if (scan_open(&at)) {
        while (scan_next(&at, &item))
            n++;
    }
    return n;
}

/* Stores the list of this answer and returns its number of jobs. *before: where the next page
 * begins; 0: no more pages. */
static int64_t
keep(struct pages *p, const char *text, size_t len, int64_t *before)
{
    struct scan at = {text, text + len};
    struct scan_value key, list, value;
    struct buf inside = BUF_INIT;

    *before = 0;
    if (!scan_open(&at) || !scan_next(&at, &key) || !scan_next(&at, &list) ||
        list.type != SCAN_ARRAY)
        return 0;
    if (scan_find(&at, "before_id") && scan_next(&at, &value))
        *before = scan_int(&value, 0);
    p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
    buf_add(&inside, list.text + 1, list.len - 2);
    p->v[p->n++] = inside;
    return count_items(&list);
}

static void
join(const struct pages *p, const char *name, struct buf *out)
{
    const char *comma = "";

    buf_addf(out, "{\"%s\":[", name);
    for (size_t i = p->n; i-- > 0;) {
        if (p->v[i].len == 0)
            continue;
        buf_adds(out, comma);
        buf_add(out, p->v[i].data, p->v[i].len);
        comma = ",";
    }
    buf_adds(out, "]}");
}

int
pages_ask(struct client *c, json_t *params, int64_t limit, struct buf *out, struct err *e)
{
    struct pages pages = {0};
    int64_t left = limit > 0 ? limit : INT64_MAX, before = 0;
    const char *text;
    size_t len;
    int rc;

    json_object_set_new(params, "ended", json_true());
    do {
        json_object_set_new(params, "limit", json_integer(left < PAGE_MAX ? left : PAGE_MAX));
        if (before)
            json_object_set_new(params, "before_id", json_integer(before));
        rc = client_call_raw(c, "jobs", json_incref(params), &text, &len, e);
        if (rc == 0)
            left -= keep(&pages, text, len, &before);
    } while (rc == 0 && before && left > 0);
    if (rc == 0)
        join(&pages, json_object_get(params, "fields") ? "rows" : "jobs", out);
    pages_free(&pages);
    json_decref(params);
    return rc;
}
