/* `berth logs`: prints a job's output. The daemon names the file; it is opened here, with the
 * user's rights, so that no user reads with the daemon's rights. Following stops when the
 * daemon's `wait` reports the job's end and everything written by then has been printed. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/ask/text_follow.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/render.h"
#include "wire/client.h"

enum { OPT_FOLLOW, OPT_TAIL, OPT_PATH, OPT_STDERR, OPT_ALL };

static const struct opt options[] = {
    {"follow", 'f', NULL, "keep printing until the job has ended"},
    {"tail", 'n', "N", "only the last N lines"},
    {"path", 0, NULL, "print only the file's path"},
    {"stderr", 0, NULL, "standard error, of jobs that have a file for it"},
    {"all", 'a', NULL, "of all jobs, including ended ones"},
    {0},
};

static const struct page page = {
    .usage = "berth logs SEL... [options]",
    .about =
        "Show the output of jobs: standard output and error together, unless the job has a\n"
        "separate file for errors (--error). All attempts of a job write to the same file.\n"
        "An array means all its tasks.",
    .options = options,
    .no_json = "it prints what jobs wrote; 'berth show SEL --json' has the path of the log",
};

struct follow {
    struct client *client;
    struct textfile log;
    int watch; /* inotify on its folder, where it appears when the job starts */
    bool ended;
    struct err error; /* why the job's end is unknown */
};

static void
on_ended(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct follow *f = ctx;

    (void)id;
    (void)result;
    f->error = *error;
    f->ended = true;
}

static int
follow_log(struct follow *f, struct err *e)
{
    struct pollfd p[3] = {{.fd = f->watch, .events = POLLIN},
                          {.fd = client_fd(f->client), .events = POLLIN},
                          {.fd = STDOUT_FILENO}};

    while (!f->log.broken) {
        bool last = f->ended;

        f->log.is_final = last;
        textfile_watch(&f->log, f->watch);
        if (f->log.fd < 0 && textfile_open(&f->log, 0, e) < 0)
            return -1;
        if (textfile_copy(&f->log, e) < 0)
            return -1;
        if (last && f->error.code) {
            *e = f->error;
            return err_prefix(e, "the job may continue, but");
        }
        if (last)
            break;
        if (client_pump(f->client, e) < 0)
            return err_prefix(e, "the job may continue, but");
        if (f->ended)
            continue;
        if (poll(p, 3, textfile_wait_ms(&f->log)) < 0 && errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait");
        f->log.broken = (p[2].revents & (POLLERR | POLLHUP)) != 0; /* the reader has closed */
        textfile_drain(f->watch);
    }
    return 0;
}

/* With private: on, other users do not get its path; otherwise file permissions protect it. */
static int
refuse_foreign(const json_t *job)
{
    const char *user = answer_str(job, "user");
    auto_buf struct buf id = BUF_INIT, owner = BUF_INIT;
    struct err e;

    answer_add_id(&id, job);
    if (user[0])
        buf_addf(&owner, ", which is %s's", user);
    err_set(&e, ERR_PERMISSION, "only the owner can read the log of job %s%s", buf_str(&id),
            buf_str(&owner));
    return cli_fail(&e);
}

static int
fail_on_log(const json_t *job, const struct err *e)
{
    bool is_foreign = geteuid() != 0 && answer_int(job, "uid", -1) != (int64_t)geteuid();

    return e->code == ERR_PERMISSION && is_foreign ? refuse_foreign(job) : cli_fail(e);
}

static int
say_no_log(const json_t *job)
{
    cli_say("job %lld has ended and left no log at %s", (long long)answer_int(job, "id", 0),
            answer_str(job, "log"));
    return 1;
}

static int
show_following(struct client *c, const json_t *job, int64_t tail)
{
    struct err e = {0};
    const char *path = answer_str(job, "log");
    struct follow f = {.client = c, .log = TEXTFILE_INIT(path)};
    auto_close int watch = textfile_notify(&f.log, &e);
    json_t *select;
    int rc;

    f.watch = watch;
    f.log.user = answer_str(job, "user");
    if (!path[0])
        return refuse_foreign(job);
    client_listen(c, NULL, on_ended, &f);
    if (watch < 0 || textfile_open(&f.log, tail, &e) < 0)
        return fail_on_log(job, &e);
    if (f.log.fd < 0 && !render_state_is_final(answer_str(job, "state")))
        cli_say("job %lld has written nothing yet (%s); waiting",
                (long long)answer_int(job, "id", 0), answer_str(job, "state"));
    select = json_pack("{s:[o]}", "select",
                       json_sprintf("%lld", (long long)answer_int(job, "id", 0)));
    rc = client_send(c, "wait", select, &e) < 0 ? -1 : follow_log(&f, &e);
    bool none = f.log.fd < 0 && !f.log.broken;
    textfile_close(&f.log);
    if (rc == 0 && none)
        return say_no_log(job);
    return rc < 0 ? cli_fail(&e) : cli_output_status();
}

static int
show_whole(const json_t *job, int64_t tail)
{
    struct err e = {0};
    auto_textfile struct textfile f = TEXTFILE_INIT(answer_str(job, "log"));

    f.user = answer_str(job, "user");
    if (!f.path[0])
        return refuse_foreign(job);
    if (textfile_open(&f, tail, &e) < 0)
        return fail_on_log(job, &e);
    if (f.fd < 0 && render_state_is_final(answer_str(job, "state")))
        return say_no_log(job);
    if (f.fd < 0) {
        cli_say("job %lld has written nothing yet (%s); the log will be %s",
                (long long)answer_int(job, "id", 0), answer_str(job, "state"), f.path);
        return 0;
    }
    return textfile_copy(&f, &e) < 0 ? cli_fail(&e) : cli_output_status();
}

static void
add_head(struct buf *out, const json_t *job, bool gap)
{
    buf_addf(out, "%s==> job ", gap ? "\n" : "");
    answer_add_id(out, job);
    buf_adds(out, " <==\n");
}

static bool
is_array(const json_t *job)
{
    return json_is_object(json_object_get(job, "array"));
}

/* Appends the started tasks of this array to *out. */
static int
add_tasks(struct client *c, const json_t *array, json_t *out, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *task, *params;
    size_t i, before = json_array_size(out);

    params = json_pack(
        "{s:[o],s:b}", "select",
        json_sprintf("%lld_[0-%d]", (long long)answer_int(array, "id", 0), ARRAY_MAX - 1),
        "all", 1);
    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "jobs"), i, task)
    {
        if (!is_array(task))
            json_array_append(out, task);
    }
    if (json_array_size(out) == before)
        cli_say("no task of array %lld has started yet", (long long)answer_int(array, "id", 0));
    return 0;
}

/* The jobs with logs: an array is replaced by its tasks, without duplicating tasks that are
 * selected themselves. The caller owns the list; NULL: e. */
static json_t *
with_tasks(struct client *c, const json_t *jobs, struct err *e)
{
    auto_json json_t *out = json_array(), *arrays = json_object();
    char id[24];
    json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job)
    {
        snprintf(id, sizeof id, "%lld", (long long)answer_int(job, "id", 0));
        if (is_array(job))
            json_object_set_new(arrays, id, json_true());
    }
    json_array_foreach(jobs, i, job)
    {
        snprintf(id, sizeof id, "%lld", (long long)answer_int(job, "array_job", 0));
        if (is_array(job) && add_tasks(c, job, out, e) < 0)
            return NULL;
        if (!is_array(job) && !json_object_get(arrays, id))
            json_array_append(out, job);
    }
    return json_incref(out);
}

/* Prints the path unchanged for a script, which opens it; on a terminal, without control
 * characters that move the cursor. */
static void
add_path(struct buf *out, const char *path)
{
    if (isatty(STDOUT_FILENO))
        text_add_safe(out, path, strlen(path), 0);
    else
        buf_adds(out, path);
    buf_addc(out, '\n');
}

static int
show_all(const json_t *jobs, int64_t tail, bool path_only)
{
    size_t i;
    json_t *job;
    int most = 0;

    json_array_foreach(jobs, i, job)
    {
        auto_buf struct buf head = BUF_INIT;
        int status = 0;

        if (path_only && !answer_str(job, "log")[0])
            status = refuse_foreign(job);
        else if (path_only)
            add_path(&head, answer_str(job, "log"));
        else if (json_array_size(jobs) > 1)
            add_head(&head, job, i > 0);
        cli_put(&head);
        if (!path_only)
            status = show_whole(job, tail);
        most = status > most ? status : most;
    }
    return most ? most : cli_output_status();
}

/* Replaces the log by the requested file, and prints where the other one is. */
static void
choose_file(json_t *job, bool errors)
{
    const char *error = answer_str(job, "error");
    auto_buf struct buf id = BUF_INIT;

    answer_add_id(&id, job);
    if (errors && error[0])
        json_object_set(job, "log", json_object_get(job, "error"));
    else if (errors && answer_str(job, "log")[0])
        cli_say("job %s has no separate file for errors; they are in its log", buf_str(&id));
    else if (error[0])
        cli_say("the standard error of job %s is in another file: berth logs --stderr %s",
                buf_str(&id), buf_str(&id));
}

static void
choose_files(json_t *jobs, bool errors)
{
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        choose_file(job, errors);
    }
}

int
cmd_logs(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    auto_client struct client *c = NULL;
    auto_json json_t *result = NULL;
    bool follow = false;
    bool path_only = false;
    bool all = false;
    bool errors = false;
    json_t *params;
    int64_t tail = 0;
    json_t *jobs;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_FOLLOW)
            follow = true;
        else if (opt == OPT_PATH)
            path_only = true;
        else if (opt == OPT_STDERR)
            errors = true;
        else if (opt == OPT_ALL)
            all = true;
        else if (parse_int(r.value, 1, INT32_MAX, &tail, &e) < 0)
            return cli_usage("--tail: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    params = ask_select_or_all(&r, all,
                               "which job? For example: berth logs 12 -f, or @ for "
                               "your last");
    if (!params)
        return 2;
    json_object_set_new(params, "all", json_true());
    c = connect_daemon(cli, &e);
    if (c)
        connect_keep(cli, c, NULL);
    else
        json_decref(params);
    if (!c || client_call(c, "jobs", params, &result, &e) < 0)
        return cli_fail(&e);
    jobs = json_object_get(result, "jobs");
    if (!follow || path_only) {
        auto_json json_t *logs = with_tasks(c, jobs, &e);

        if (!logs)
            return cli_fail(&e);
        choose_files(logs, errors);
        return show_all(logs, tail, path_only);
    }
    if (json_array_size(jobs) != 1)
        return cli_usage("-f follows one job, but this selects %zu", json_array_size(jobs));
    if (is_array(json_array_get(jobs, 0)))
        return cli_usage("-f follows one job, but %lld is an array; write %lld_TASK with the "
                         "number of a task",
                         (long long)answer_int(json_array_get(jobs, 0), "id", 0),
                         (long long)answer_int(json_array_get(jobs, 0), "id", 0));
    choose_files(jobs, errors);
    return show_following(c, json_array_get(jobs, 0), tail);
}
