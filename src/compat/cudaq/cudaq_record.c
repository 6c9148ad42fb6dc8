/* One line of cudaq's jobs file: parsing and rendering. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "compat/compat.h"
#include "compat/cudaq/cudaq.h"
#include "compat/py/pytext.h"
#include "wire/client.h"

#define DIGEST_SIZE 9

#define SETTLE_US 50000 /* batches writes of events that come together */

static const char *const names[] = {"pending", "running", "completed", "failed", "unknown"};

/* CQ_STATUSES: not a status. */
static enum cq_status
status_of(const json_t *value)
{
    enum cq_status s = CQ_PENDING;

    while (s < CQ_STATUSES && strcmp(names[s], answer_str(value, "status")) != 0)
        s++;
    return s;
}

/* --- reading --- */

static enum cq_status
last_of(const json_t *history)
{
    size_t n = json_array_size(history);

    return n > 0 ? status_of(json_array_get(history, n - 1)) : CQ_STATUSES;
}

/* Parse local time in isoformat; 0: not a time. */
static int64_t
read_iso(const char *text)
{
    struct tm tm = {.tm_isdst = -1};
    time_t at;

    if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    at = mktime(&tm);
    return at > 0 ? (int64_t)at * 1000000 : 0;
}

static bool
take_value(struct cq_job *job, const json_t *value)
{
    const char *command = answer_str(value, "command"), *at = command;
    const char *key = answer_str(value, "berth_key");

    job->status = status_of(value);
    if (py_strip(&at, strlen(at)) == 0 || job->status == CQ_STATUSES)
        return false;
    job->command = xstrdup(command);
    if (strlen(key) < sizeof job->key)
        snprintf(job->key, sizeof job->key, "%s", key);
    job->noted = last_of(json_object_get(value, "history"));
    job->pid = answer_int(value, "pid", 0);
    job->gpu = answer_int(value, "gpu_id", -1);
    job->began_us = read_iso(answer_str(value, "start_time"));
    return true;
}

/* --- its key --- */

/* Keys end in ".1-0a1b2c3d"; those of earlier versions have no digest. */
static void
digest_of(const char *command, char out[DIGEST_SIZE])
{
    char sha1[41];

    text_sha1(command, strlen(command), sha1);
    snprintf(out, DIGEST_SIZE, "%.8s", sha1);
}

void
cq_job_name(struct cudaq *q, struct cq_job *job)
{
    char digest[DIGEST_SIZE];

    digest_of(job->command, digest);
    snprintf(job->key, sizeof job->key, "%llx.%x-%s", (unsigned long long)q->key_base,
             ++q->n_keys, digest);
}

bool
cq_job_is_renamed(const struct cq_job *job)
{
    const char *dash = strchr(job->key, '-');
    char digest[DIGEST_SIZE];

    if (!dash)
        return false;
    digest_of(job->command, digest);
    return strcmp(dash + 1, digest) != 0;
}

struct cq_job *
cq_job_read(const struct cudaq *q, const char *line, size_t n)
{
    auto_json json_t *value = json_loadb(line, n, JSON_DECODE_ANY, NULL);
    auto_buf struct buf out = BUF_INIT;
    struct cq_job *job = xcalloc(1, sizeof *job);

    buf_reserve(&out, n + 1);
    buf_add(&out, line, n);
    job->text = buf_take(&out);
    job->text_len = n;
    if (!take_value(job, value))
        (void)compat_say("[Warning] %s in %s: %s",
                         value ? "No command with a known status" : "Invalid JSON line",
                         q->config.jobs_file, job->text);
    return job;
}

struct cq_job *
cq_job_new(const char *command)
{
    struct cq_job *job = xcalloc(1, sizeof *job);

    job->command = xstrdup(command);
    job->noted = CQ_STATUSES;
    job->gpu = -1;
    return job;
}

void
cq_job_free(struct cq_job *job)
{
    free(job->text);
    free(job->command);
    free(job->log);
    json_decref(job->changes);
    free(job);
}

/* --- writing --- */

void
cq_job_changed(struct cudaq *q, struct cq_job *job)
{
    int64_t pause = q->save_pause_us > SETTLE_US ? q->save_pause_us : SETTLE_US;

    if (!q->dirty)
        q->dirty_us = clock_boot_us();
    job->dirty = q->dirty = true;
    if (!q->save_due_us)
        q->save_due_us = clock_boot_us() + pause;
}

/* at_us 0: now. */
static json_t *
history_item(enum cq_status status, int64_t at_us)
{
    auto_buf struct buf when = BUF_INIT;

    py_add_iso(&when, at_us > 0 ? at_us : clock_wall_us());
    return json_pack("{s:s,s:s}", "status", names[status], "time", buf_str(&when));
}

void
cq_job_set(struct cudaq *q, struct cq_job *job, enum cq_status status, int64_t at_us)
{
    if (job->noted != status) {
        if (!job->changes)
            job->changes = json_array();
        json_array_append_new(job->changes, history_item(status, at_us));
    }
    if (!job->gone) {
        q->count[job->status]--;
        q->count[status]++;
    }
    job->status = job->noted = status;
    cq_job_changed(q, job);
}

/* Reset the job as if it had never been started. */
void
cq_job_forget_run(struct cudaq *q, struct cq_job *job)
{
    compat_unbind(&q->session, &job->id);
    if (job->key[0])
        HASH_DELETE(by_key, q->keys, job);
    job->key[0] = '\0';
    job->pid = job->began_us = job->start_us = 0;
    job->gpu = -1;
    job->exit_known = job->unsure = job->foreign = false;
    free(job->log);
    job->log = NULL;
}

static void
set_or_null(json_t *value, const char *key, json_t *member)
{
    json_object_set_new(value, key, member ? member : json_null());
}

/* The log's path in the record: os.path.join(log_dir, name). */
static json_t *
log_shown(const char *dir, const char *log)
{
    size_t n = strlen(dir);
    auto_free char *path =
        *log == '/' ? xstrdup(log)
                    : xasprintf("%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", log);

    return json_string(path);
}

static void
put_run(const struct cudaq *q, const struct cq_job *job, json_t *value)
{
    auto_buf struct buf when = BUF_INIT;
    bool waits = job->status == CQ_PENDING;

    set_or_null(value, "pid", job->pid ? json_integer(job->pid) : NULL);
    set_or_null(value, "gpu_id", job->gpu >= 0 ? json_integer(job->gpu) : NULL);
    if (waits || job->start_us) {
        py_add_iso(&when, job->start_us);
        set_or_null(value, "start_time", waits ? NULL : json_string(buf_str(&when)));
        set_or_null(value, "log_file",
                    waits || !job->log ? NULL : log_shown(q->config.log_dir, job->log));
    }
    if (job->exit_known)
        json_object_set_new(value, "exit_code", json_integer(job->exit_code));
    else
        json_object_del(value, "exit_code");
}

char *
cq_job_render(const struct cudaq *q, const struct cq_job *job)
{
    auto_json json_t *value = job->text
                                  ? json_loadb(job->text, job->text_len, JSON_DECODE_ANY, NULL)
                                  : json_pack("{s:s}", "command", job->command);
    auto_buf struct buf out = BUF_INIT;
    json_t *history = json_object_get(value, "history");

    json_object_set_new(value, "status", json_string(names[job->status]));
    put_run(q, job, value);
    if (job->key[0])
        json_object_set_new(value, "berth_key", json_string(job->key));
    else
        json_object_del(value, "berth_key");
    if (job->id)
        json_object_set_new(value, "berth_job", json_integer(job->id));
    else
        json_object_del(value, "berth_job");
    if (!json_is_array(history)) {
        history = json_array();
        json_object_set_new(value, "history", history);
    }
    if (job->changes)
        json_array_extend(history, job->changes);
    if (last_of(history) != job->status) /* the text was older than the last write */
        json_array_append_new(history, history_item(job->status, 0));
    py_add_json(&out, value, 0);
    return buf_take(&out);
}
