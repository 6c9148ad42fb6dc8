/* Plain tables: see plain.h. Called by web_page.c. */
#include "web/pages/plain.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "web/http/query.h"
#include "web/http/reply.h"
#include "web/pages/html.h"

static void
add_cell(struct buf *out, const char *text)
{
    buf_adds(out, "<td>");
    html_add(out, text);
    buf_adds(out, "</td>");
}

static void
add_mib(struct buf *out, const json_t *v)
{
    char text[24];

    add_cell(out, format_mib(json_is_integer(v) ? json_integer_value(v) : -1, text));
}

static const char *
text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : "";
}

static void
add_header(struct buf *out, const char *caption, const char *const *names)
{
    buf_addf(out, "<table><caption>%s</caption><thead><tr>", caption);
    for (; *names; names++)
        buf_addf(out, "<th scope=\"col\">%s</th>", *names);
    buf_adds(out, "</tr></thead><tbody>\n");
}

static void
add_gpus(struct buf *out, const json_t *gpus)
{
    static const char *const names[] = {"GPU",  "Name", "State", "Used",
                                        "Held", "Free", "Total", NULL};
    const json_t *g;
    size_t i;

    add_header(out, "GPUs", names);
    json_array_foreach(gpus, i, g)
    {
        buf_addf(out, "<tr><th scope=\"row\">%lld</th>",
                 (long long)json_integer_value(json_object_get(g, "index")));
        add_cell(out, text_of(g, "name"));
        add_cell(out, text_of(g, "state"));
        add_mib(out, json_object_get(g, "used_mib"));
        add_mib(out, json_object_get(g, "held_mib"));
        add_mib(out, json_object_get(g, "free_mib"));
        add_mib(out, json_object_get(g, "total_mib"));
        buf_adds(out, "</tr>\n");
    }
    buf_adds(out, "</tbody></table>\n");
}

/* The job's GPUs, "0,1", or the number it requests. */
static void
add_places(struct buf *out, const json_t *job)
{
    const json_t *gpus = json_object_get(job, "gpus"), *g;
    size_t i;

    buf_adds(out, "<td>");
    json_array_foreach(gpus, i, g)
        buf_addf(out, "%s%lld", i ? "," : "",
                 (long long)json_integer_value(json_object_get(g, "index")));
    if (json_array_size(gpus) == 0)
        buf_addf(out, "(%lld)",
                 (long long)json_integer_value(json_object_get(job, "gpus_wanted")));
    buf_adds(out, "</td>");
}

static void
add_what(struct buf *out, const char *name, const char *command)
{
    buf_adds(out, "<td>");
    if (name[0]) {
        buf_adds(out, "<b>");
        html_add(out, name);
        buf_adds(out, "</b> ");
    }
    html_add(out, command);
    buf_adds(out, "</td>");
}

static void
add_jobs(struct buf *out, const char *caption, const json_t *jobs)
{
    static const char *const names[] = {"Job", "User", "State", "GPU", "Command", "Why", NULL};
    const json_t *job;
    size_t i;

    add_header(out, caption, names);
    json_array_foreach(jobs, i, job)
    {
        long long id = json_integer_value(json_object_get(job, "id"));
        const char *command = json_string_value(json_object_get(job, "command"));
        buf_addf(out, "<tr><th scope=\"row\"><a href=\"/jobs/%lld\">%lld</a></th>", id, id);
        add_cell(out, text_of(job, "user"));
        add_cell(out, text_of(job, "state"));
        add_places(out, job);
        add_what(out, text_of(job, "name"), command ? command : "(private)");
        add_cell(out, text_of(job, "explain"));
        buf_adds(out, "</tr>\n");
    }
    buf_adds(out, "</tbody></table>\n");
}

/* All fields of an object that have a value, written as JSON. */
static void
add_fields(struct buf *out, const json_t *object)
{
    const char *key;
    const json_t *v;

    buf_adds(out, "<dl>\n");
    json_object_foreach((json_t *)object, key, v)
    {
        char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!json_is_null(v)) {
            buf_adds(out, "<dt>");
            html_add(out, key);
            buf_adds(out, "</dt><dd>");
            html_add(out, text ? text : json_string_value(v));
            buf_adds(out, "</dd>\n");
        }
        free(text);
    }
    buf_adds(out, "</dl>\n");
}

static void
add_error(struct buf *out, const json_t *error)
{
    buf_adds(out, "<p class=\"problem bad\">");
    html_add(out, text_of(error, "message"));
    buf_adds(out, "</p>\n");
}

static void
add_older_link(struct buf *out, const json_t *before)
{
    if (json_is_integer(before))
        buf_addf(out, "<p><a href=\"/history?before_id=%lld\">older</a></p>\n",
                 (long long)json_integer_value(before));
}

void
plain_add(struct buf *out, const struct query *q, const struct reply *data)
{
    const json_t *tree = data->tree, *error = json_object_get(tree, "error");

    if (error) {
        add_error(out, error);
        return;
    }
    buf_adds(out, "<p class=\"dim\">Without JavaScript this page shows the state at the time "
                  "loaded.</p>\n");
    if (q->kind == QUERY_OVERVIEW) {
        add_gpus(out, json_object_get(tree, "gpus"));
        if (json_array_size(json_object_get(tree, "failed")) > 0)
            add_jobs(out, "Failed in the last hour", json_object_get(tree, "failed"));
        add_jobs(out, "Running and pending", json_object_get(tree, "queue"));
        add_jobs(out, "Recently ended", json_object_get(tree, "recent"));
    } else if (q->kind == QUERY_HISTORY) {
        add_jobs(out, "Ended jobs, newest first", json_object_get(tree, "jobs"));
        add_older_link(out, json_object_get(tree, "before_id"));
    } else if (q->kind == QUERY_JOB) {
        add_fields(out, json_object_get(tree, "explanation"));
        add_fields(out, json_object_get(tree, "job"));
    } else {
        add_fields(out, tree);
    }
}
