/* The daemon's part of an attached job: its state, the address of its supervisor, why it
 * waits, how it ended. The daemon is queried when an event reports a change. It may be away
 * for long: the supervisor's exit record also yields an exit status. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/ask/job_log.h"
#include "cli/common/cli.h"
#include "cli/common/quote.h"
#include "cli/common/rawtty.h"
#include "cli/interactive/interactive_priv.h"
#include "cli/table/render.h"
#include "cli/verbs/wait_verb.h"
#include "core/queue/job.h"
#include "sys/exitrec.h"
#include "wire/client.h"

#define CHUNK 65536

void
session_finish(struct session *s, int status)
{
    s->done = true;
    s->status = status;
}

void
session_add_way_back(const struct session *s, struct buf *out)
{
    buf_adds(out, "berth");
    if (s->what->cli->dir) {
        buf_adds(out, " --dir ");
        quote_add(out, s->what->cli->dir);
    }
    buf_addf(out, " attach %lld", (long long)s->what->job);
}

/* --- the daemon --- */

static json_t *
select_job(const struct session *s)
{
    return json_pack("{s:[o], s:b}", "select", json_sprintf("%lld", (long long)s->what->job),
                     "all", 1);
}

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    struct session *s = ctx;

    (void)method;
    if (strcmp(answer_str(params, "kind"), "usage") != 0)
        s->look = true;
}

int
session_subscribe(struct session *s, struct err *e)
{
    json_t *params = json_pack("{s:I, s:b, s:[I]}", "since", (json_int_t)0, "follow", 1, "jobs",
                               (json_int_t)s->what->job);

    client_listen(*s->client, on_notify, NULL, s);
    return client_call(*s->client, "events", params, NULL, e);
}

void
session_lose_daemon(struct session *s)
{
    client_free(*s->client);
    *s->client = NULL;
    s->retries = 0;
    s->retry_us = 0;
}

/* The exit status for the supervisor's record, when no daemon can provide it. */
static int
status_of_record(const struct session *s)
{
    struct exitrec r;
    struct err e;
    auto_free char *text = s->at.ended ? json_dumps(s->at.ended, 0) : NULL;

    if (!text || exitrec_decode(text, strlen(text), &r, &e) < 0)
        return -1;
    if (r.ending.outcome == OUTCOME_SETUP_FAILED)
        return r.ending.signal     ? (128 + r.ending.signal) & 255
               : r.ending.code > 0 ? r.ending.code
                                   : 1;
    if (r.ending.outcome == OUTCOME_EXITED)
        return r.ending.code & 255;
    if (r.ending.outcome == OUTCOME_SIGNALED)
        return (128 + r.ending.signal) & 255;
    return r.ending.outcome == OUTCOME_TIMEOUT     ? 124
           : r.ending.outcome == OUTCOME_CANCELLED ? 130
                                                   : 1;
}

static void
finish_without_daemon(struct session *s, const struct err *e)
{
    auto_buf struct buf back = BUF_INIT;
    int status = status_of_record(s);

    if (status >= 0) {
        session_finish(s, status);
        return;
    }
    session_add_way_back(s, &back);
    cli_fail(e);
    cli_say("job %lld may continue without the daemon. To return to it: %s",
            (long long)s->what->job, buf_str(&back));
    session_finish(s, err_exit_status(e->code));
}

void
session_mend(struct session *s)
{
    struct err e = {0};

    s->retry_us = 0;
    *s->client = s->may_start ? connect_or_start(s->what->cli, s->what->args, NULL, &e)
                              : connect_daemon(s->what->cli, &e);
    if (*s->client && session_subscribe(s, &e) == 0) {
        s->retries = 0;
        s->look = true;
        return;
    }
    client_free(*s->client);
    *s->client = NULL;
    if (++s->retries < SESSION_RETRIES)
        s->retry_us = clock_boot_us() + SESSION_RETRY_US;
    else
        finish_without_daemon(s, &e);
}

void
session_cancel(struct session *s)
{
    struct err e = {0};

    if (!*s->client)
        *s->client = connect_daemon(s->what->cli, &e);
    if (!*s->client || client_call(*s->client, "cancel", select_job(s), NULL, &e) < 0)
        cli_fail(&e);
    else
        cli_say("job %lld is cancelled", (long long)s->what->job);
}

/* --- the log --- */

/* Prints from the log what an exited supervisor did not send. */
static void
show_rest(struct session *s)
{
    static char chunk[CHUNK];
    auto_close int fd = joblog_open(answer_str(s->job, "log"), answer_str(s->job, "user"));
    off_t at = s->at.next > 0 ? s->at.next : 0;
    ssize_t n;

    while (fd >= 0 && (n = pread(fd, chunk, sizeof chunk, at)) > 0) {
        if (cli_write(chunk, (size_t)n) != 0)
            return;
        at += n;
    }
    s->at.next = at;
}

/* --- the job --- */

/* Another attempt may write to another log, in which the offset is meaningless. */
static void
note_log(struct session *s)
{
    const char *log = answer_str(s->job, "log");

    if (s->log && strcmp(s->log, log) == 0)
        return;
    if (s->log)
        s->at.next = -1;
    free(s->log);
    s->log = xstrdup(log);
}

/* Prints the detach key, but only on a terminal. */
static void
tell_keys(struct session *s)
{
    auto_buf struct buf gpus = BUF_INIT;
    const json_t *cards = json_object_get(s->job, "gpus");

    if (s->told_keys || s->what->read_only || !isatty(STDERR_FILENO) || !rawtty_is_ours())
        return;
    s->told_keys = true;
    answer_add_gpus(&gpus, cards);
    cli_say("job %lld%s%s; %s", (long long)s->what->job, gpus.len ? " on gpu " : "",
            buf_str(&gpus),
            answer_bool(s->job, "pty") ? "Ctrl-] detaches"
                                       : "Ctrl-C detaches, twice within two seconds cancels");
}

/* Retries the connection to the supervisor. An event reports a job that is ending. No event
 * reports when a starting job creates its socket, so it is retried soon, at growing
 * intervals. */
static void
try_again(struct session *s, const struct err *e)
{
    const char *state = answer_str(s->job, "state");
    bool starts = strcmp(state, "STARTING") == 0;
    int64_t pause_us = SESSION_RETRY_MIN_US << (s->retries < 5 ? s->retries : 5);

    if (!starts && strcmp(state, "RUNNING") != 0)
        return;
    if (++s->retries < SESSION_RETRIES || starts) {
        s->retry_us =
            clock_boot_us() + (pause_us < SESSION_RETRY_US ? pause_us : SESSION_RETRY_US);
        return;
    }
    cli_fail(e);
    session_finish(s, err_exit_status(e->code));
}

static void
connect_to_shepherd(struct session *s)
{
    struct attached_wish wish = {.offset = s->at.next, .tail = s->what->tail};
    struct err e = {0};

    wish.input = !s->what->read_only;
    (void)interactive_window(&wish.rows, &wish.columns);
    if (attached_connect(&s->at, answer_str(s->job, "attach"), &wish, &e) == 0) {
        s->retries = 0;
        s->retry_us = 0;
        tell_keys(s);
        return;
    }
    if (e.code == ERR_UNREACHABLE) {
        try_again(s, &e);
        return;
    }
    err_prefix(&e, "cannot attach to job %lld", (long long)s->what->job);
    session_finish(s, cli_fail(&e));
}

static void
tell_waiting(struct session *s)
{
    const char *why = answer_str(s->job, "explain");

    if (s->said && strcmp(s->said, why) == 0)
        return;
    free(s->said);
    s->said = xstrdup(why);
    s->told_waiting = true;
    cli_say("job %lld %s%s%s", (long long)s->what->job,
            s->over ? "will run again; it is pending" : "waits", why[0] ? ": " : "", why);
}

static void
tell_started(struct session *s)
{
    auto_buf struct buf gpus = BUF_INIT;

    if (!s->told_waiting)
        return;
    s->told_waiting = false;
    answer_add_gpus(&gpus, json_object_get(s->job, "gpus"));
    cli_say("job %lld runs%s%s", (long long)s->what->job, gpus.len ? " on gpu " : "",
            buf_str(&gpus));
}

static void
on_final(struct session *s)
{
    int64_t attempt = answer_int(s->job, "attempt", 0);

    if (s->over != attempt && attempt > 0) /* it has run, however briefly */
        tell_started(s);
    if (s->over != attempt && attempt > 0 && s->at.next < 0)
        connect_to_shepherd(s); /* it has ended: the supervisor usually waits for us */
    if (s->at.fd >= 0)
        return; /* the rest comes from the supervisor */
    if (s->over != attempt && attempt > 0)
        show_rest(s);
    wait_tell_end(s->job);
    session_finish(s, (int)answer_int(s->job, "exit_status", 1));
}

static void
on_job(struct session *s)
{
    const char *state = answer_str(s->job, "state");
    bool waits = strcmp(state, "PENDING") == 0 || strcmp(state, "HELD") == 0;

    note_log(s);
    if (render_state_is_final(state)) {
        on_final(s);
    } else if (waits) {
        tell_waiting(s);
    } else if (s->at.fd < 0 && s->over != answer_int(s->job, "attempt", 0)) {
        tell_started(s);
        connect_to_shepherd(s);
    }
}

void
session_look(struct session *s)
{
    auto_json json_t *result = NULL;
    struct err e = {0};

    s->look = false;
    if (client_call(*s->client, "jobs", select_job(s), &result, &e) < 0) {
        if (e.code == ERR_UNREACHABLE)
            session_lose_daemon(s);
        else
            session_finish(s, cli_fail(&e));
        return;
    }
    json_decref(s->job);
    s->job = json_incref(json_array_get(json_object_get(result, "jobs"), 0));
    if (s->job) {
        on_job(s);
        return;
    }
    cli_say("job %lld no longer exists", (long long)s->what->job);
    session_finish(s, err_exit_status(ERR_NO_JOB));
}

void
session_part(struct session *s)
{
    rawtty_leave();
    attached_close(&s->at);
    if (s->at.refused) {
        cli_say("job %lld: %s", (long long)s->what->job, s->at.refused);
        session_finish(s, 1);
        return;
    }
    if (s->at.ended) {
        s->over = answer_int(s->at.ended, "attempt", 0);
        free(TAKE(s->said));
    }
    s->look = true;
}
