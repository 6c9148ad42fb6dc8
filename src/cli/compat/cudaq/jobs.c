/* cudaq's jobs file. The file is the truth about records that wait, for people add and change
 * them there; of what runs and ends we know more. So it is read again before it is written,
 * what we know is merged in, lines that are no JSON stay where they are, and what others append
 * to the old file while ours takes its place is carried over. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/cudaq/cudaq.h"
#include "cli/compat/pytext.h"

#define SETTLE_US      50000 /* what happens together is written together */
#define FILE_MAX_BYTES ((size_t)1 << 28)

static const char *const names[] = {"pending", "running", "completed", "failed", "unknown"};

const char *
cq_status_name(enum cq_status status)
{
    return names[status];
}

static bool
status_of(const char *name, enum cq_status *out)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum cq_status)i;
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------- identities */

/* How often a command has come so far in one pass over the file. */
struct seen {
    const char *command; /* borrowed */
    int n;
    UT_hash_handle hh;
};

static void
seen_free(struct seen **all)
{
    struct seen *s, *next;

    HASH_ITER(hh, *all, s, next)
    {
        HASH_DEL(*all, s);
        free(s);
    }
}

static int
seen_count(struct seen **all, const char *command)
{
    struct seen *s;

    HASH_FIND_STR(*all, command, s);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        s->command = command;
        HASH_ADD_KEYPTR(hh, *all, s->command, strlen(s->command), s);
    }
    return s->n++;
}

static struct cq_job *
job_of(struct cudaq *q, const char *command, int occurrence)
{
    char key[CQ_KEY_SIZE], digest[13];
    struct cq_job *job;

    text_sha1_12(command, strlen(command), digest);
    snprintf(key, sizeof key, "%s#%d", digest, occurrence);
    HASH_FIND_STR(q->jobs, key, job);
    if (job)
        return job;
    job = xcalloc(1, sizeof *job);
    memcpy(job->key, key, sizeof key);
    job->command = xstrdup(command);
    job->gpu = -1;
    HASH_ADD_STR(q->jobs, key, job);
    return job;
}

/* ---------------------------------------------------------------- reading */

static void
warn_once(struct cudaq *q, const char *fmt, const char *file, const char *line)
{
    auto_free char *words = xasprintf("%s\n", line);
    auto_buf struct buf out = BUF_INIT;

    if (strstr(buf_str(&q->warned), words))
        return;
    buf_adds(&q->warned, words);
    buf_addf(&out, "[Warning] %s in %s: %s\n", fmt, file, line);
    (void)cli_put(&out);
}

static void
warn_of(struct cudaq *q, const struct record *r)
{
    if (r->text) {
        warn_once(q, "Invalid JSON line", q->config.jobs_file, r->text);
    } else {
        auto_buf struct buf line = BUF_INIT;

        py_add_json(&line, r->value, 0);
        warn_once(q, "No command and known status", q->config.jobs_file, buf_str(&line));
    }
}

/* Local time as isoformat writes it; 0: it says nothing. */
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

static void
take_record(struct cq_job *job, const json_t *value, enum cq_status status)
{
    if (status == CQ_PENDING) { /* another run has another log */
        free(job->log_name);
        job->log_name = NULL;
    }
    job->status = status;
    job->pid = answer_int(value, "pid", 0);
    job->gpu = answer_int(value, "gpu_id", -1);
    job->noted_id = answer_int(value, "berth_job", 0);
    job->was_started = answer_str(value, "start_time")[0] != '\0';
    job->began_us = read_iso(answer_str(value, "start_time"));
}

/* The job of a record, NULL with a warning when it is none. */
static struct cq_job *
job_of_record(struct cudaq *q, struct seen **seen, const struct record *r,
              enum cq_status *status)
{
    const char *command = answer_str(r->value, "command");

    if (!command[0] || !status_of(answer_str(r->value, "status"), status)) {
        warn_of(q, r);
        return NULL;
    }
    return job_of(q, command, seen_count(seen, command));
}

static void
take_all(struct cudaq *q, const struct records *r)
{
    struct seen *seen = NULL;
    struct cq_job *job, *next;

    HASH_ITER(hh, q->jobs, job, next) job->in_file = false;
    for (size_t i = 0; i < r->n; i++) {
        enum cq_status status;

        job = job_of_record(q, &seen, &r->at[i], &status);
        if (!job)
            continue;
        job->in_file = true;
        job->order = (int64_t)i;
        if (!job->dirty && (job->status != status || !job->id)) {
            /* Somebody has asked for it, or for another run of it. */
            q->sync_due |= status == CQ_PENDING;
            take_record(job, r->at[i].value, status);
        }
    }
    seen_free(&seen);
}

int
cq_jobs_load(struct cudaq *q, struct err *e)
{
    struct records r;

    if (records_load(q->config.jobs_file, &r, e) < 0)
        return -1;
    take_all(q, &r);
    records_free(&r);
    return 0;
}

size_t
cq_count(const struct cudaq *q, enum cq_status status)
{
    size_t n = 0;

    for (const struct cq_job *job = q->jobs; job; job = job->hh.next)
        n += job->in_file && job->status == status;
    return n;
}

/* ---------------------------------------------------------------- writing */

void
cq_job_set(struct cudaq *q, struct cq_job *job, enum cq_status status)
{
    if (job->status != status) {
        auto_buf struct buf when = BUF_INIT;

        py_add_iso(&when, clock_wall_us());
        if (!job->changes)
            job->changes = json_array();
        json_array_append_new(job->changes, json_pack("{s:s,s:s}", "status", names[status],
                                                      "time", buf_str(&when)));
    }
    job->status = status;
    job->dirty = q->dirty = true;
    if (!q->save_due_us)
        q->save_due_us = clock_boot_us() + SETTLE_US;
}

static void
set_or_null(json_t *value, const char *key, json_t *member)
{
    json_object_set_new(value, key, member ? member : json_null());
}

/* What we know of the job, over its record. */
static void
merge(const struct cudaq *q, const struct cq_job *job, json_t *value)
{
    auto_buf struct buf when = BUF_INIT;
    json_t *history = json_object_get(value, "history");

    json_object_set_new(value, "status", json_string(names[job->status]));
    set_or_null(value, "pid", job->pid ? json_integer(job->pid) : NULL);
    set_or_null(value, "gpu_id", job->gpu >= 0 ? json_integer(job->gpu) : NULL);
    if (job->start_us && job->log_name) {
        auto_free char *log = xasprintf("%s/%s", q->config.log_dir, job->log_name);

        py_add_iso(&when, job->start_us);
        json_object_set_new(value, "start_time", json_string(buf_str(&when)));
        json_object_set_new(value, "log_file", json_string(log));
    }
    if (job->id)
        json_object_set_new(value, "berth_job", json_integer(job->id));
    if (job->exit_known)
        json_object_set_new(value, "exit_code", json_integer(job->exit_code));
    if (!json_is_array(history)) {
        history = json_array();
        json_object_set_new(value, "history", history);
    }
    if (job->changes)
        json_array_extend(history, job->changes);
}

static json_t *
new_record(const char *command)
{
    return json_pack("{s:s,s:s,s:n,s:n,s:n,s:n}", "command", command, "status", "pending",
                     "pid", "gpu_id", "start_time", "log_file");
}

static void
merge_all(struct cudaq *q, struct records *r)
{
    struct seen *seen = NULL;
    size_t i;
    json_t *command;

    for (i = 0; i < r->n; i++) {
        enum cq_status status;
        struct cq_job *job = job_of_record(q, &seen, &r->at[i], &status);

        if (job && job->dirty)
            merge(q, job, r->at[i].value);
    }
    seen_free(&seen);
    json_array_foreach(q->new_commands, i, command)
        records_add(r, new_record(json_string_value(command)));
}

/* What was appended to the old file behind what has been read of it. */
static int
carry_over(const struct cudaq *q, int old, off_t from, struct err *e)
{
    auto_buf struct buf more = BUF_INIT;
    auto_close int fd = -1;
    char chunk[4096];
    ssize_t n;

    while ((n = pread(old, chunk, sizeof chunk, from)) > 0) {
        buf_add(&more, chunk, (size_t)n);
        from += n;
    }
    if (more.len == 0)
        return 0;
    fd = open(q->config.jobs_file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || file_write_all(fd, more.data, more.len) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s", q->config.jobs_file);
    return 0;
}

static void
forget_dirty(struct cudaq *q)
{
    struct cq_job *job, *next;

    HASH_ITER(hh, q->jobs, job, next)
    {
        job->dirty = false;
        json_decref(job->changes);
        job->changes = NULL;
    }
    json_array_clear(q->new_commands);
    q->dirty = false;
    q->save_due_us = 0;
}

int
cq_jobs_save(struct cudaq *q, struct err *e)
{
    auto_close int old = open(q->config.jobs_file, O_RDONLY | O_CLOEXEC);
    struct records r;
    int rc;
    off_t read_to;

    if (!q->dirty && json_array_size(q->new_commands) == 0)
        return 0;
    if (records_load(q->config.jobs_file, &r, e) < 0)
        return -1;
    read_to = (off_t)r.bytes;
    merge_all(q, &r);
    rc = records_save(q->config.jobs_file, &r, e);
    if (rc == 0) {
        forget_dirty(q);
        take_all(q, &r);
    }
    records_free(&r);
    return rc == 0 && old >= 0 ? carry_over(q, old, read_to, e) : rc;
}

/* ------------------------------------------------------ the commands file */

/* One line: a command that no record has, nor a line before it. */
static void
take_command(struct cudaq *q, const char *s, size_t n)
{
    auto_free char *command = NULL;
    struct cq_job *job;

    n = py_strip(&s, n);
    if (n == 0 || *s == '#' || !text_is_utf8(s, n, NULL))
        return;
    command = xstrndup(s, n);
    job = job_of(q, command, 0);
    if (job->in_file)
        return;
    job->in_file = true;
    json_array_append_new(q->new_commands, json_string(command));
    q->sync_due = true;
}

int
cq_commands_load(struct cudaq *q, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    const char *at, *end;

    if (access(q->config.commands_file, F_OK) < 0)
        return 0;
    if (file_read(q->config.commands_file, FILE_MAX_BYTES, &text, e) < 0)
        return -1;
    at = buf_str(&text);
    end = at + text.len;
    if (text.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* as some editors leave it */
        at += 3;
    while (at < end) {
        size_t n = 0;

        while (at + n < end && at[n] != '\n' && at[n] != '\r')
            n++;
        take_command(q, at, n);
        at += n + 1;
    }
    return 0;
}

void
cq_jobs_free(struct cudaq *q)
{
    struct cq_job *job, *next;

    HASH_ITER(hh, q->jobs, job, next)
    {
        HASH_DEL(q->jobs, job);
        free(job->command);
        free(job->log_name);
        json_decref(job->changes);
        free(job);
    }
    json_decref(q->new_commands);
    free(q->log_root);
    free(q->sync_path);
    buf_free(&q->warned);
}
