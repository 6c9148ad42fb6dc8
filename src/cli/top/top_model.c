/* The model of `berth top`: its data and its view state; see top_model.h. */
#include "cli/top/top_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "cli/top/top_filter.h"

#define MESSAGE_US INT64_C(5000000)

/* All fields used by any view of the list, or of the selected job. */
static const char columns[] =
    "id,user,state,gpus,vram,share,declared,peak,now,time,limit,priority,reason,expected,exit,"
    "submitted,started,ended,tags,after,cwd,log,command";

static const struct {
    const char *name, *columns;
} sorts[] = {
    {"turn", NULL},
    {"id", "id"},
    {"user", "user,state,id"},
    {"state", "state,id"},
    {"vram", "-vram,id"},
    {"time", "-time,id"},
    {"submitted", "-submitted"},
    {"command", "command,id"},
};

static void
read_format(struct top *t)
{
    struct err e;

    if (queue_format_read(&t->format, columns, sorts[t->sort].columns, 0, &e) < 0)
        err_abort("the columns of top: %s", e.text);
}

void
top_init(struct top *t)
{
    *t = (struct top){.filter = xstrdup("")};
    read_format(t);
}

static void
free_log(struct top_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->lines[i]);
    free(log->lines);
    free(log->path);
    free(log->why);
    *log = (struct top_log){0};
}

void
top_free(struct top *t)
{
    json_decref(t->status);
    json_decref(t->gpus);
    json_decref(t->health);
    json_decref(t->explain);
    json_decref(t->failed);
    buf_free(&t->answer);
    queue_rows_free(&t->rows);
    for (int i = 0; i < t->n_past; i++)
        free(t->past[i].uuid);
    free(t->past);
    free_log(&t->log);
    free(t->trouble);
    free(t->filter);
    free(t->shown);
    buf_free(&t->text);
    free(t->prompt);
    buf_free(&t->input);
    free(t->message);
    *t = (struct top){0};
}

void
top_take_status(struct top *t, json_t *status)
{
    json_decref(t->status);
    t->status = status;
}

static struct top_past *
past_of(struct top *t, const char *uuid)
{
    for (int i = 0; i < t->n_past; i++) {
        if (strcmp(t->past[i].uuid, uuid) == 0)
            return &t->past[i];
    }
    t->past = xrealloc(t->past, (size_t)(t->n_past + 1) * sizeof *t->past);
    t->past[t->n_past] = (struct top_past){.uuid = xstrdup(uuid)};
    return &t->past[t->n_past++];
}

static void
add_point(struct top_past *p, int64_t at_us, int64_t util, int64_t used, int64_t total)
{
    const struct top_point *last = &p->points[(p->next + TOP_POINTS - 1) % TOP_POINTS];

    if (p->n > 0 && at_us <= last->at_us)
        return;
    p->points[p->next] = (struct top_point){
        .at_us = at_us,
        .util = (int16_t)util,
        .used_permille = (int16_t)(used >= 0 && total > 0 ? used * 1000 / total : -1)};
    p->next = (p->next + 1) % TOP_POINTS;
    p->n += p->n < TOP_POINTS;
}

void
top_take_gpus(struct top *t, json_t *gpus)
{
    size_t i;
    json_t *gpu;

    json_decref(t->gpus);
    t->gpus = gpus;
    if (json_is_object(json_object_get(gpus, "unknown_since")))
        return; /* stale figures are not new points */
    json_array_foreach(json_object_get(gpus, "gpus"), i, gpu)
        add_point(past_of(t, answer_str(gpu, "uuid")), t->now_us, answer_int(gpu, "util", -1),
                  answer_int(gpu, "used_mib", -1), answer_int(gpu, "total_mib", -1));
}

static int64_t
total_of(const struct top *t, const char *uuid)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu)
    {
        if (strcmp(answer_str(gpu, "uuid"), uuid) == 0)
            return answer_int(gpu, "total_mib", -1);
    }
    return -1;
}

static int64_t
int_at(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);

    return json_is_number(v) ? (int64_t)json_number_value(v) : -1;
}

/* Adds the history from before this view was opened; points it recorded itself stay. */
void
top_take_series(struct top *t, const json_t *answer)
{
    size_t i, k;
    json_t *gpu, *point;

    json_array_foreach(json_object_get(answer, "gpus"), i, gpu)
    {
        const char *uuid = answer_str(gpu, "uuid");
        struct top_past *p = past_of(t, uuid);
        struct top_past seen = *p;
        int first = (seen.next + TOP_POINTS - seen.n) % TOP_POINTS;

        p->n = p->next = 0;
        json_array_foreach(json_object_get(gpu, "points"), k, point)
        {
            int64_t at_us = int_at(point, 0);

            if (seen.n == 0 || at_us < seen.points[first].at_us)
                add_point(p, at_us, int_at(point, 4), int_at(point, 1), total_of(t, uuid));
        }
        for (int n = 0; n < seen.n; n++) {
            const struct top_point *old = &seen.points[(first + n) % TOP_POINTS];

            add_point(p, old->at_us, old->util, old->used_permille, 1000);
        }
    }
}

void
top_take_health(struct top *t, json_t *answer)
{
    json_decref(t->health);
    t->health = answer;
}

void
top_take_failed(struct top *t, json_t *answer)
{
    json_decref(t->failed);
    t->failed = answer;
}

void
top_take_explain(struct top *t, json_t *answer)
{
    json_decref(t->explain);
    t->explain = json_incref(json_array_get(json_object_get(answer, "jobs"), 0));
    json_decref(answer);
}

void
top_lose(struct top *t, const char *why)
{
    t->connected = false;
    t->silent_ms = 0;
    free(t->trouble);
    t->trouble = xstrdup(why);
}

/* --- the list --- */

static void
select_at(struct top *t, size_t at)
{
    struct row row;

    t->at = at;
    t->selected = at < t->n_shown && queue_rows_read(&t->format, &t->rows, t->shown[at], &row)
                      ? (uint32_t)scan_int(&row.v[F_ID], 0)
                      : 0;
}

/* The daemon lists pending jobs in scheduling order. */
static void
note_first(struct top *t, const struct row *row)
{
    auto_buf struct buf reason = BUF_INIT;

    if (t->first_reason[0] || t->sort != 0 || !scan_is(&row->v[F_STATE], "PENDING"))
        return;
    scan_add(&reason, &row->v[F_REASON]);
    snprintf(t->first_reason, sizeof t->first_reason, "%s", buf_str(&reason));
}

/* The selection stays with its job or, if that is gone, at its position. */
static void
filter_rows(struct top *t)
{
    size_t at = t->at;
    struct row row;

    t->shown = xrealloc(t->shown, (t->rows.n + 1) * sizeof *t->shown);
    t->n_shown = 0;
    t->first_reason[0] = '\0';
    for (size_t i = 0; i < t->rows.n; i++) {
        if (!queue_rows_read(&t->format, &t->rows, i, &row))
            continue;
        note_first(t, &row);
        if (!top_filter_lets(t->filter, &row))
            continue;
        if (t->selected && scan_int(&row.v[F_ID], 0) == t->selected)
            at = t->n_shown;
        t->shown[t->n_shown++] = i;
    }
    if (at >= t->n_shown)
        at = t->n_shown ? t->n_shown - 1 : 0;
    select_at(t, at);
}

static void
find_rows(struct top *t)
{
    queue_rows_free(&t->rows);
    queue_rows_find(&t->format, buf_str(&t->answer), t->answer.len, &t->rows);
    filter_rows(t);
}

void
top_take_jobs(struct top *t, const char *answer, size_t n, size_t limit)
{
    buf_clear(&t->answer);
    buf_add(&t->answer, answer, n);
    find_rows(t);
    t->cut = limit > 0 && t->rows.n >= limit;
}

const char *
top_sort_name(int sort)
{
    return sort < (int)(sizeof sorts / sizeof sorts[0]) ? sorts[sort].name : NULL;
}

void
top_set_sort(struct top *t, int sort)
{
    t->sort = top_sort_name(sort) ? sort : 0;
    read_format(t);
    find_rows(t);
}

void
top_set_filter(struct top *t, const char *filter)
{
    char *copy = xstrdup(filter);

    free(t->filter);
    t->filter = copy;
    filter_rows(t);
}

void
top_move(struct top *t, long by)
{
    long at = (long)t->at + by;
    long last = (long)t->n_shown - 1;

    select_at(t, (size_t)(at > last ? (last < 0 ? 0 : last) : at < 0 ? 0 : at));
}

bool
top_selected(const struct top *t, struct row *row)
{
    return t->at < t->n_shown && queue_rows_read(&t->format, &t->rows, t->shown[t->at], row);
}

void
top_add_selected(const struct top *t, struct buf *out)
{
    struct row row;

    if (!top_selected(t, &row))
        return;
    if (row.v[F_ARRAY_JOB].type == SCAN_NUMBER)
        queue_column_draw("id", &row, out);
    else
        scan_add(out, &row.v[F_ID]);
}

char *
top_selected_log(const struct top *t)
{
    auto_buf struct buf path = BUF_INIT;
    struct row row;

    if (top_selected(t, &row) && row.v[F_LOG].type == SCAN_STRING)
        scan_add(&path, &row.v[F_LOG]);
    return path.len ? buf_take(&path) : NULL;
}

char *
top_selected_user(const struct top *t)
{
    auto_buf struct buf user = BUF_INIT;
    struct row row;

    if (top_selected(t, &row) && row.v[F_USER].type == SCAN_STRING)
        scan_add(&user, &row.v[F_USER]);
    return user.len ? buf_take(&user) : NULL;
}

void
top_add_run_time(const struct top *t, const struct row *row, struct buf *out)
{
    int64_t started_us = queue_time_us(&row->v[F_STARTED]);
    auto_buf struct buf state = BUF_INIT;
    char span[24];

    scan_add(&state, &row->v[F_STATE]);
    if (started_us && render_state_is_active(buf_str(&state)))
        buf_adds(out, format_duration(
                          t->now_us > started_us ? (t->now_us - started_us) / 1000 : 0, span));
}

void
top_add_use(const struct top *t, const struct row *row, struct buf *out)
{
    int64_t id = scan_int(&row->v[F_ID], 0);
    int64_t sum = -1;
    size_t i, k;
    json_t *gpu, *hold;
    char size[24];

    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu)
    {
        json_array_foreach(json_object_get(gpu, "holds"), k, hold)
        {
            int64_t now = answer_int(hold, "now_mib", -1);

            if (now >= 0 && answer_int(hold, "job", 0) == id)
                sum = (sum < 0 ? 0 : sum) + now;
        }
    }
    if (sum >= 0)
        buf_adds(out, format_mib(sum, size));
}

/* --- the last line --- */

void
top_say(struct top *t, bool bad, const char *words)
{
    char *copy = xstrdup(words);

    free(t->message);
    t->message = copy;
    t->message_is_bad = bad;
    t->message_until_us = t->now_us + MESSAGE_US;
}

void
top_ask(struct top *t, const char *question)
{
    char *copy = question ? xstrdup(question) : NULL;

    free(t->prompt);
    t->prompt = copy;
    buf_clear(&t->input);
}
