/* `jobs`: what `queue`, `show` and every list is made of. With `fields` the answer is rows
 * of just those, which is what lists of many thousands want. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/job.h"
#include "daemon/daemon.h"
#include "daemon/jobjson.h"
#include "daemon/methods.h"
#include "daemon/page.h"
#include "daemon/select.h"

struct listing {
    struct daemon *daemon;
    struct jsonw *out;
    jobjson_field *fields; /* NULL: whole objects */
    size_t n_fields;
    size_t n;
};

/* Not 0: the answer has become too long. */
static int
put_job(const struct job *job, const char *const *uuids, struct listing *l)
{
    const struct jobjson x = {.daemon = l->daemon, .job = job, .uuids = uuids};
    l->n++;
    if (!l->fields) {
        jobjson_object(&x, l->out);
        return l->out->full;
    }
    jsonw_array(l->out);
    for (size_t i = 0; i < l->n_fields; i++)
        l->fields[i](&x, l->out);
    jsonw_end_array(l->out);
    return l->out->full;
}

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    return put_job(job, uuids, arg);
}

static bool
has_field(const struct listing *l, jobjson_field field)
{
    for (size_t i = 0; i < l->n_fields; i++)
        if (l->fields[i] == field)
            return true;
    return false;
}

static int
read_fields(const json_t *names, struct listing *l, struct err *e)
{
    size_t i, most = jobjson_count();
    const json_t *name;
    if (!names)
        return 0;
    if (!json_is_array(names))
        return err_set(e, ERR_USAGE, "\"fields\" must be a list of names");
    l->fields = xcalloc(most, sizeof(jobjson_field));
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        jobjson_field field = text ? jobjson_find(text) : NULL;
        if (!field)
            return err_set(e, ERR_USAGE, "a job has no field \"%.60s\"", text ? text : "?");
        if (has_field(l, field))
            return err_set(e, ERR_USAGE, "\"fields\" names \"%s\" twice", text);
        l->fields[l->n_fields++] = field;
    }
    return 0;
}

static int
read_order(const json_t *order, struct select *s, struct err *e)
{
    const char *text = json_string_value(order);
    s->in_turn = text && strcmp(text, "turn") == 0;
    if (!order || s->in_turn || (text && strcmp(text, "priority") == 0))
        return 0;
    return err_set(e, ERR_USAGE, "\"order\" is \"priority\" or \"turn\"");
}

/* A page of the history, and where the next one begins. */
static int
list_page(struct daemon *d, const struct caller *c, const struct select *s,
          const json_t *params, struct listing *l, uint32_t *older, struct err *e)
{
    struct page page = {0};
    int rc = page_read(d, c, params, &page, e);
    if (rc == 0 && select_check_ids(d, s, e))
        rc = -1;
    if (rc == 0)
        rc = page_walk(d, s, &page, on_ended, l, older, e);
    page_free(&page);
    return rc;
}

/* Ended jobs come first, so that the newest lines of a list are what is going on. Words that
 * name jobs reach into the history; no words mean the queue, unless `all` is said. */
static int
list(struct daemon *d, const struct select *s, const json_t *params, struct listing *l,
     struct err *e)
{
    int64_t limit = json_integer_value(json_object_get(params, "limit"));
    bool only_ended = json_is_true(json_object_get(params, "ended"));
    bool ended = only_ended || !s->everything || json_is_true(json_object_get(params, "all"));
    auto_free struct job **live = NULL;
    if (limit < 0)
        return err_set(e, ERR_USAGE, "\"limit\" must not be negative");
    if (select_check_ids(d, s, e))
        return -1;
    if (ended && select_ended(d, s, limit, on_ended, l, e))
        return -1;
    size_t n = only_ended ? 0 : select_live(d, s, &live);
    if (limit > 0 && n > (size_t)limit)
        n = (size_t)limit;
    for (size_t i = 0; i < n && !put_job(live[i], NULL, l); i++)
        ;
    return l->n == 0 && !s->everything ? select_none(params, e) : 0;
}

int
method_jobs(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
            struct err *e)
{
    struct listing l = {.daemon = d, .out = out};
    bool paged = page_is_wanted(params);
    uint32_t older = 0;
    struct select s;
    int rc = select_read(d, c->uid, params, &s, e);
    s.arrays_for_tasks = true;
    if (rc == 0 && !paged) /* a page has its own */
        rc = select_read_where(params, &s, e);
    if (rc == 0)
        rc = read_order(json_object_get(params, "order"), &s, e);
    if (rc == 0)
        rc = read_fields(json_object_get(params, "fields"), &l, e);
    if (rc == 0) {
        jsonw_object(out);
        jsonw_key(out, l.fields ? "rows" : "jobs");
        jsonw_array(out);
        rc = paged ? list_page(d, c, &s, params, &l, &older, e) : list(d, &s, params, &l, e);
        jsonw_end_array(out);
        if (older)
            jsonw_kint(out, "before_id", older);
        else if (paged)
            jsonw_knull(out, "before_id");
        jsonw_end_object(out);
    }
    free(l.fields);
    select_free(&s);
    return rc;
}
