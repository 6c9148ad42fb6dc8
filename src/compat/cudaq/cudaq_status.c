/* `cudaq.py status`: prints one line per record of the file. Pending and running records may
 * be stale if no dispatcher was there to update them, so the daemon that has the jobs is
 * asked, if it is running. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/cudaq/cudaq.h"
#include "compat/engine/compat_paths.h"
#include "compat/engine/line_records.h"
#include "compat/engine/takeover.h"
#include "compat/py/pytext.h"

static const char *
icon_of(const char *status)
{
    static const struct {
        const char *status, *icon;
    } icons[] = {{"completed", "[✓]"}, {"running", "[→]"}, {"failed", "[!]"}};

    for (size_t i = 0; i < sizeof icons / sizeof icons[0]; i++) {
        if (strcmp(status, icons[i].status) == 0)
            return icons[i].icon;
    }
    return "[ ]";
}

static void
add_capitalised(struct buf *out, const char *word)
{
    for (const char *p = word; *p; p++)
        buf_addc(out,
                 (char)(p == word ? toupper((unsigned char)*p) : tolower((unsigned char)*p)));
}

/* str() of any JSON value, since people edit the file. */
static void
add_value(struct buf *out, const json_t *value)
{
    if (json_is_string(value))
        buf_adds(out, json_string_value(value));
    else if (!value || json_is_null(value))
        buf_adds(out, "None");
    else if (json_is_boolean(value))
        buf_adds(out, json_is_true(value) ? "True" : "False");
    else
        py_add_json(out, value, 0);
}

static void
add_line(struct buf *out, const json_t *job)
{
    const json_t *gpu = json_object_get(job, "gpu_id");
    const char *status = answer_str(job, "status");

    if (!status[0])
        status = "unknown";
    buf_addf(out, "%s ", icon_of(status));
    add_value(out, json_object_get(job, "command"));
    buf_adds(out, " → GPU ");
    if (!gpu || json_is_null(gpu))
        buf_adds(out, "N/A");
    else
        add_value(out, gpu);
    buf_adds(out, " → ");
    add_capitalised(out, status);
    if (strcmp(status, "running") == 0) {
        buf_adds(out, " (PID ");
        add_value(out, json_object_get(job, "pid"));
        buf_addc(out, ')');
    }
    buf_addc(out, '\n');
}

/* Warn about a line that is not a job, as `run` does. */
static void
add_warning(struct buf *out, const struct cq_config *c, const struct record *r)
{
    buf_addf(out, "[Warning] %s in %s: ", r->text ? "Invalid JSON line" : "No command",
             c->jobs_file);
    if (r->text)
        buf_adds(out, r->text);
    else
        py_add_json(out, r->value, 0);
    buf_addc(out, '\n');
}

/* True if the daemon may know more about the record. */
static bool
may_be_stale(const json_t *record)
{
    const char *status = answer_str(record, "status");

    return answer_str(record, "command")[0] && answer_str(record, "berth_key")[0] &&
           (strcmp(status, "pending") == 0 || strcmp(status, "running") == 0);
}

/* Add the record's job; a status set by hand is a request, so that no run is looked up. */
static void
add_job(struct cudaq *q, const json_t *record)
{
    auto_buf struct buf text = BUF_INIT;
    struct cq_job *job;

    py_add_json(&text, record, 0);
    job = cq_job_read(q, text.data, text.len);
    job->unsure = job->status == job->noted;
    q->lines[q->n++] = job;
}

/* Update the records in memory, not the file, with the daemon's state. */
static void
ask_daemon(struct cudaq *q, struct records *r)
{
    auto_free char *lock = records_lock_path(q->config.jobs_file);
    struct err e;
    size_t n = 0;

    while (n < r->n && !may_be_stale(r->at[n].value))
        n++;
    q->session.link.client = n < r->n ? compat_find_left(lock) : NULL;
    if (!q->session.link.client)
        return;
    q->session.events = json_array();
    cq_find_places(q);
    q->lines = xcalloc(r->n + 1, sizeof(struct cq_job *));
    for (size_t i = 0; i < r->n; i++) {
        if (may_be_stale(r->at[i].value))
            add_job(q, r->at[i].value);
    }
    if (cq_recall(q, &e) < 0)
        return;
    for (size_t i = n = 0; i < r->n; i++) {
        if (!may_be_stale(r->at[i].value))
            continue;
        auto_free char *text = cq_job_render(q, q->lines[n++]);
        json_decref(r->at[i].value);
        r->at[i].value = json_loads(text, 0, NULL);
    }
}

int
cq_status(struct cudaq *q, struct err *e)
{
    const struct cq_config *c = &q->config;
    auto_buf struct buf out = BUF_INIT, lines = BUF_INIT;
    struct records r;

    if (records_load(c->jobs_file, &r, e) < 0)
        return -1;
    ask_daemon(q, &r);
    for (size_t i = 0; i < r.n; i++) {
        const json_t *command = json_object_get(r.at[i].value, "command");

        if (!command || json_is_null(command))
            add_warning(&out, c, &r.at[i]);
        else
            add_line(&lines, r.at[i].value);
    }
    records_free(&r);
    compat_close(&q->session);
    buf_add(&out, lines.data, lines.len);
    return cli_put(&out);
}
