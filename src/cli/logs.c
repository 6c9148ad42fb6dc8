/* `berth logs`: a job's output. The daemon says where it is; the file is opened here, as
 * the user, so that nobody reads with the daemon's rights. Following ends when the job has
 * ended, which the daemon's `wait` says, and everything written by then has been shown. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/answer.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/opt.h"
#include "cli/render.h"
#include "wire/client.h"

#define CHUNK 65536

enum { OPT_FOLLOW, OPT_TAIL, OPT_PATH, OPT_ALL };

static const struct opt options[] = {
    {"follow", 'f', NULL, "go on until the job has ended"},
    {"tail", 'n', "N", "only the last N lines"},
    {"path", 0, NULL, "only where the file is"},
    {"all", 'a', NULL, "of every job, also those that have ended"},
    {0},
};

static const struct page page = {
    .usage = "berth logs SEL [-f]",
    .about =
        "What a job has written, standard output and error together. All attempts of a job\n"
        "write to one file, one after the other.",
    .options = options,
};

struct follow {
    struct client *client;
    int fd; /* the log; -1: it is not there yet */
    int notify;
    const char *path;
    off_t at;
    bool ended;
    bool broken; /* standard output is gone */
};

/* Copies what is there from f->at on. */
static int
copy_rest(struct follow *f, struct err *e)
{
    char chunk[CHUNK];
    struct stat st;

    if (f->fd < 0)
        return 0;
    /* A log that became shorter was begun anew. */
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < f->at)
        f->at = 0;
    for (;;) {
        ssize_t n = pread(f->fd, chunk, sizeof chunk, f->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot read %s", f->path);
        if (n == 0)
            return 0;
        if (cli_write(chunk, (size_t)n) != 0) {
            f->broken = true;
            return 0;
        }
        f->at += n;
    }
}

/* Where the last n lines begin. */
static off_t
find_tail(int fd, int64_t n)
{
    struct stat st;
    char chunk[CHUNK];
    off_t end;
    bool last = true;

    if (fstat(fd, &st) < 0)
        return 0;
    for (end = st.st_size; end > 0;) {
        off_t start = end > (off_t)sizeof chunk ? end - (off_t)sizeof chunk : 0;
        ssize_t got = pread(fd, chunk, (size_t)(end - start), start);

        if (got <= 0)
            return 0;
        for (ssize_t i = got - 1; i >= 0; i--) {
            /* The newline that ends the file begins no line. */
            if (chunk[i] == '\n' && !last && --n == 0)
                return start + i + 1;
            last = false;
        }
        end = start;
    }
    return 0;
}

static int
open_log(struct follow *f, int64_t tail, struct err *e)
{
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (f->fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, ERR_FAILED, errno, "cannot read %s", f->path);
    if (tail > 0)
        f->at = find_tail(f->fd, tail);
    return 0;
}

static void
on_ended(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct follow *f = ctx;

    (void)id;
    (void)result;
    (void)error;
    f->ended = true;
}

/* The folder is watched too: the log appears in it when the job starts. The descriptor, the
 * caller's. */
static int
watch_log(const char *path, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (notify < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot watch %s", path);
    inotify_add_watch(notify, dirname(copy), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
    return notify;
}

static void
drain(int fd)
{
    char events[4096];

    while (read(fd, events, sizeof events) > 0)
        continue;
}

static int
follow_log(struct follow *f, struct err *e)
{
    struct pollfd p[3] = {{.fd = f->notify, .events = POLLIN},
                          {.fd = client_fd(f->client), .events = POLLIN},
                          {.fd = STDOUT_FILENO}};

    while (!f->broken) {
        bool last = f->ended;

        if (f->fd < 0 && open_log(f, 0, e) < 0)
            return -1;
        if (copy_rest(f, e) < 0)
            return -1;
        if (last)
            break;
        if (client_pump(f->client, e) < 0)
            return err_prefix(e, "the job may go on, but");
        if (f->ended)
            continue;
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait");
        f->broken = (p[2].revents & (POLLERR | POLLHUP)) != 0; /* nobody reads on */
        drain(f->notify);
    }
    return 0;
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
    auto_close int notify = watch_log(path, &e);
    struct follow f = {.client = c, .fd = -1, .notify = notify, .path = path};
    json_t *select;
    int rc;

    client_listen(c, NULL, on_ended, &f);
    if (notify < 0 || open_log(&f, tail, &e) < 0)
        return cli_fail(&e);
    if (f.fd < 0 && !render_state_is_final(answer_str(job, "state")))
        cli_say("job %lld has written nothing yet (%s); waiting",
                (long long)answer_int(job, "id", 0), answer_str(job, "state"));
    select = json_pack("{s:[o]}", "select",
                       json_sprintf("%lld", (long long)answer_int(job, "id", 0)));
    rc = client_send(c, "wait", select, &e) < 0 ? -1 : follow_log(&f, &e);
    if (f.fd >= 0)
        close(f.fd);
    if (rc == 0 && f.fd < 0 && !f.broken)
        return say_no_log(job);
    return rc < 0 ? cli_fail(&e) : cli_output_status();
}

static int
show_whole(const json_t *job, int64_t tail)
{
    struct err e = {0};
    struct follow f = {.fd = -1, .path = answer_str(job, "log")};
    int rc;

    if (open_log(&f, tail, &e) < 0)
        return cli_fail(&e);
    if (f.fd < 0 && render_state_is_final(answer_str(job, "state")))
        return say_no_log(job);
    if (f.fd < 0) {
        cli_say("job %lld has written nothing yet (%s); its log will be %s",
                (long long)answer_int(job, "id", 0), answer_str(job, "state"), f.path);
        return 0;
    }
    rc = copy_rest(&f, &e);
    close(f.fd);
    return rc < 0 ? cli_fail(&e) : cli_output_status();
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

        if (path_only)
            buf_addf(&head, "%s\n", answer_str(job, "log"));
        else if (json_array_size(jobs) > 1)
            buf_addf(&head, "%s==> job %lld <==\n", i ? "\n" : "",
                     (long long)answer_int(job, "id", 0));
        cli_put(&head);
        if (!path_only)
            status = show_whole(job, tail);
        most = status > most ? status : most;
    }
    return most ? most : cli_output_status();
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
    if (!c)
        json_decref(params);
    if (!c || client_call(c, "jobs", params, &result, &e) < 0)
        return cli_fail(&e);
    jobs = json_object_get(result, "jobs");
    if (!follow || path_only)
        return show_all(jobs, tail, path_only);
    if (json_array_size(jobs) != 1)
        return cli_usage("-f follows one job; that selects %zu", json_array_size(jobs));
    return show_following(c, json_array_get(jobs, 0), tail);
}
