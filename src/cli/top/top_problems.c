/* Collects problems for the head of `berth top`; see top_problems.h. */
#include "cli/top/top_problems.h"

#include <string.h>

#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/table/gpu_table.h"
#include "cli/top/top_model.h"

#define SILENT_MS      3000 /* acceptable delay of an answer */
#define FAILURES_NAMED 6

/* Adds a problem after those of equal severity. NULL: there is no room, but it is counted. */
static struct buf *
add_problem(struct top_problems *p, enum style style)
{
    int at = p->n;

    if (style == STYLE_BAD || p->worst == STYLE_NONE)
        p->worst = style;
    p->total++;
    while (style == STYLE_BAD && at > 0 && p->style[at - 1] != STYLE_BAD)
        at--;
    if (at == TOP_PROBLEMS_MAX)
        return NULL;
    if (p->n == TOP_PROBLEMS_MAX)
        buf_free(&p->text[--p->n]);
    for (int i = p->n++; i > at; i--) {
        p->text[i] = p->text[i - 1];
        p->style[i] = p->style[i - 1];
    }
    p->text[at] = (struct buf)BUF_INIT;
    p->style[at] = style;
    return &p->text[at];
}

static void
say_problem(struct top_problems *p, enum style style, const char *words)
{
    struct buf *line = add_problem(p, style);

    if (line)
        buf_adds(line, words);
}

static void
find_daemon_problems(const struct top *t, struct top_problems *p)
{
    const json_t *daemon = json_object_get(t->status, "daemon");
    const json_t *unknown = json_object_get(t->gpus, "unknown_since");
    struct buf *line;
    char span[24];

    if (!t->connected && t->trouble && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "trying again: %s", t->trouble);
    if (t->silent_ms >= SILENT_MS && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "the daemon has not answered for %s",
                 format_duration(t->silent_ms, span));
    if (json_is_object(unknown) && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line,
                 "the GPUs have not answered since %s%s%s; these are the last known values, "
                 "and new GPU jobs wait",
                 answer_str(unknown, "rfc3339"),
                 answer_str(t->gpus, "probe_error")[0] ? ": " : "",
                 answer_str(t->gpus, "probe_error"));
    if (!t->health && answer_str(daemon, "disk_trouble")[0] &&
        (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "no new jobs start: %s", answer_str(daemon, "disk_trouble"));
    if (!t->health && answer_str(daemon, "start_trouble")[0] &&
        (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "no new jobs start: %s", answer_str(daemon, "start_trouble"));
    if (answer_bool(daemon, "stopping"))
        say_problem(p, STYLE_WARN, "the daemon is stopping: no new jobs start");
}

/* Finds problems that have no place of their own on the screen; those of GPUs and the probe
 * have one. */
static void
find_ailments(const struct top *t, struct top_problems *p)
{
    size_t i;
    json_t *check;

    json_array_foreach(json_object_get(t->health, "checks"), i, check)
    {
        const char *name = answer_str(check, "name");
        const char *state = answer_str(check, "state");
        struct buf *line;

        if (strcmp(state, "ok") == 0 || strcmp(name, "gpu") == 0 || strcmp(name, "probe") == 0)
            continue;
        line = add_problem(p, strcmp(state, "bad") == 0 ? STYLE_BAD : STYLE_WARN);
        if (line)
            buf_addf(line, "%s: %s", name, answer_str(check, "text"));
    }
}

static void
find_excess(const json_t *gpu, struct top_problems *p)
{
    auto_buf struct buf words = BUF_INIT;
    struct buf *line;

    gpu_table_add_excess(gpu, &words);
    for (const char *s = buf_str(&words); *s; s += strcspn(s, "\n") + 1) {
        if ((line = add_problem(p, STYLE_WARN)))
            buf_add(line, s, strcspn(s, "\n"));
    }
}

static bool
is_of_an_array(const json_t *row)
{
    return json_is_integer(json_array_get(row, 1));
}

/* An array fails because tasks failed, which are listed too. */
static bool
is_array(const json_t *row)
{
    return json_is_object(json_array_get(row, 4));
}

static void
add_failure(const json_t *row, struct buf *line)
{
    if (is_of_an_array(row))
        buf_addf(line, "%lld_%lld", json_integer_value(json_array_get(row, 1)),
                 json_integer_value(json_array_get(row, 2)));
    else
        buf_addf(line, "%lld", json_integer_value(json_array_get(row, 0)));
    buf_addf(line, " %s", json_string_value(json_array_get(row, 3)));
}

/* "2 jobs failed within the hour: 12_3 OUT_OF_MEMORY, 7 FAILED; a shows them" */
static void
find_failures(const struct top *t, struct top_problems *p)
{
    const json_t *rows = json_object_get(t->failed, "rows");
    bool more = json_is_integer(json_object_get(t->failed, "before_id"));
    auto_buf struct buf names = BUF_INIT;
    struct buf *line;
    size_t n = 0;

    for (size_t i = json_array_size(rows); i-- > 0;) { /* the newest is last */
        const json_t *row = json_array_get(rows, i);

        if (is_array(row))
            continue;
        if (n < FAILURES_NAMED) {
            buf_adds(&names, n ? ", " : "");
            add_failure(row, &names);
        }
        n++;
    }
    if (n > 0 && (line = add_problem(p, STYLE_WARN)))
        buf_addf(line, "%zu%s job%s failed in the last hour: %s%s; press a to see them", n,
                 more ? " or more" : "", n == 1 && !more ? "" : "s", buf_str(&names),
                 n > FAILURES_NAMED ? ", ..." : "");
}

void
top_problems_find(const struct top *t, struct top_problems *p)
{
    size_t i;
    json_t *gpu;

    *p = (struct top_problems){0};
    find_daemon_problems(t, p);
    find_ailments(t, p);
    find_failures(t, p);
    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu)
    {
        const char *state = answer_str(gpu, "state");
        bool is_out = strcmp(state, "lost") == 0 || strcmp(state, "sick") == 0;
        auto_buf struct buf words = BUF_INIT;
        struct buf *line;

        gpu_table_add_state(gpu, &words);
        if (words.len && (line = add_problem(p, is_out ? STYLE_BAD : STYLE_WARN)))
            buf_add(line, words.data, strcspn(words.data, "\n"));
    }
    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu) find_excess(gpu, p);
}

void
top_problems_free(struct top_problems *p)
{
    for (int i = 0; i < p->n; i++)
        buf_free(&p->text[i]);
}
