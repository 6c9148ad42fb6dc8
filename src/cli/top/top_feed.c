/* Requests to the daemon for `berth top`; see top_feed.h. At most one request of each kind is
 * in flight. The list is requested after events, but not before ten times the duration of its
 * last request has passed, so that viewing takes at most a tenth of the daemon's time. */
#include "cli/top/top_feed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/table/render.h"
#include "cli/top/top_model.h"
#include "wire/account.h"
#include "wire/client.h"

#define FIGURES_US   INT64_C(1000000)
#define SETTLE_US    INT64_C(100000)   /* other events often follow an event */
#define AGAIN_US     INT64_C(30000000) /* the list, without events: expected starts move */
#define USAGE_US     INT64_C(2000000)  /* a peak can grow at any time */
#define HEALTH_US    INT64_C(10000000)
#define RETRY_US     INT64_C(1000000)
#define TAKES_TIMES  10
#define LIST_LIMIT   500
#define LIST_MORE    5000 /* if it is filtered, sorted or far down */
#define ENDED_LIMIT  100
#define FAILED_US    INT64_C(3600000000) /* how long a failure counts as news */
#define FAILED_LIMIT 100
#define PAST_US      INT64_C(300000000)
#define PAST_POINTS  300

enum question {
    ASK_GPUS,
    ASK_STATUS,
    ASK_JOBS,
    ASK_EXPLAIN,
    ASK_SERIES,
    ASK_HEALTH,
    ASK_FAILED,
    ASK_FOLLOW,
    ASK_DO,
    QUESTIONS
};

struct asked {
    int64_t id;      /* of the request in flight; 0: none */
    int64_t at_us;   /* when it was sent; boot clock, as all times here */
    int64_t due_us;  /* when to send the next; INT64_MAX: after an event */
    int64_t took_us; /* duration of the last one */
};

struct top_feed {
    const struct cli *cli;
    struct top *top;
    struct client *client; /* NULL: not connected */
    int64_t retry_us;
    int64_t now_us;
    struct asked asked[QUESTIONS];
    char *done;         /* owned; message to print when ASK_DO succeeds */
    uint32_t explained; /* the job of ASK_EXPLAIN */
    size_t limit;       /* of the list in flight */
    bool changed;
};

struct top_feed *
top_feed_new(const struct cli *cli, struct top *t)
{
    struct top_feed *f = xcalloc(1, sizeof *f);

    f->cli = cli;
    f->top = t;
    return f;
}

void
top_feed_free(struct top_feed *f)
{
    if (!f)
        return;
    client_free(f->client);
    free(f->done);
    free(f);
}

int
top_feed_fd(const struct top_feed *f)
{
    return f->client ? client_fd(f->client) : -1;
}

static void
want(struct top_feed *f, enum question q, int64_t in_us)
{
    struct asked *a = &f->asked[q];
    int64_t due_us = f->now_us + in_us;

    /* Not before ten times the duration of the last request. */
    if (due_us < a->at_us + a->took_us * TAKES_TIMES)
        due_us = a->at_us + a->took_us * TAKES_TIMES;
    if (due_us < a->due_us)
        a->due_us = due_us;
}

static void
want_all(struct top_feed *f, int64_t in_us)
{
    want(f, ASK_GPUS, in_us);
    want(f, ASK_STATUS, in_us);
    want(f, ASK_JOBS, in_us);
    want(f, ASK_EXPLAIN, in_us);
}

/* --- answers --- */

static void
take_tree(struct top_feed *f, enum question q, json_t *tree)
{
    if (q == ASK_GPUS)
        top_take_gpus(f->top, json_incref(tree));
    else if (q == ASK_STATUS)
        top_take_status(f->top, json_incref(tree));
    else if (q == ASK_EXPLAIN)
        top_take_explain(f->top, json_incref(tree));
    else if (q == ASK_HEALTH)
        top_take_health(f->top, json_incref(tree));
    else if (q == ASK_FAILED)
        top_take_failed(f->top, json_incref(tree));
    else if (q == ASK_SERIES)
        top_take_series(f->top, tree);
}

/* "held jobs 3 and 4"; GPUs have no ids. */
static void
say_done(struct top_feed *f, const json_t *result)
{
    auto_buf struct buf words = BUF_INIT;

    buf_adds(&words, f->done);
    if (json_is_array(json_object_get(result, "ids"))) {
        if (json_array_size(json_object_get(result, "ids")) == 0) {
            top_say(f->top, true,
                    "nothing to do: the job has ended, or is in that state already");
            return;
        }
        buf_addc(&words, ' ');
        ask_add_jobs(&words, result, "ids");
    }
    top_say(f->top, false, buf_str(&words));
}

static void
on_answer(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct top_feed *f = ctx;

    for (int q = 0; q < QUESTIONS; q++) {
        struct asked *a = &f->asked[q];

        if (a->id != id)
            continue;
        a->id = 0;
        a->took_us = clock_boot_us() - a->at_us;
        f->changed = true;
        if (result && q == ASK_DO)
            say_done(f, result);
        else if (result)
            take_tree(f, (enum question)q, result);
        else if (q == ASK_DO || q == ASK_JOBS)
            top_say(f->top, true, error->text);
        else if (q == ASK_SERIES || q == ASK_HEALTH || q == ASK_FAILED)
            a->due_us = INT64_MAX; /* the daemon does not support this request */
    }
}

static void
on_text(void *ctx, int64_t id, const char *result, size_t n)
{
    struct top_feed *f = ctx;
    struct asked *jobs = &f->asked[ASK_JOBS];

    if (id != jobs->id) {
        auto_json json_t *tree = json_loadb(result, n, 0, NULL);
        const struct err none = {.text = "the daemon's answer is not JSON"};

        on_answer(ctx, id, tree, &none);
        return;
    }
    jobs->id = 0;
    jobs->took_us = clock_boot_us() - jobs->at_us;
    f->changed = true;
    top_take_jobs(f->top, result, n, f->limit);
}

/* Reports jobs that fail while the user watches. */
static void
tell(struct top_feed *f, const json_t *event)
{
    const char *state = answer_str(event, "state");
    auto_buf struct buf words = BUF_INIT;
    auto_buf struct buf word = BUF_INIT;
    auto_buf struct buf details = BUF_INIT;
    enum style style;

    if (strcmp(answer_str(event, "kind"), "ended") != 0 || strcmp(state, "COMPLETED") == 0 ||
        strcmp(state, "CANCELLED") == 0)
        return;
    if (!render_event(event, answer_str(event, "command"), &word, &details, &style))
        return;
    if (answer_int(event, "array_job", 0) > 0)
        buf_addf(&words, "job %lld_%lld ", (long long)answer_int(event, "array_job", 0),
                 (long long)answer_int(event, "array_task", 0));
    else
        buf_addf(&words, "job %lld ", (long long)answer_int(event, "job", 0));
    buf_addf(&words, "%s  %s", buf_str(&word), buf_str(&details));
    top_say(f->top, true, buf_str(&words));
    want(f, ASK_FAILED, SETTLE_US);
}

static void
on_event(void *ctx, const char *method, json_t *params)
{
    struct top_feed *f = ctx;

    (void)method;
    tell(f, params);
    f->changed = true;
    if (strcmp(answer_str(params, "kind"), "usage") == 0)
        want(f, ASK_JOBS, USAGE_US);
    else
        want_all(f, SETTLE_US);
}

/* --- requests --- */

static json_t *
jobs_params(struct top_feed *f)
{
    const struct top *t = f->top;
    json_t *params =
        json_pack("{s:o, s:s}", "fields", queue_format_fields(&t->format), "order", "turn");

    f->limit = t->filter[0] || t->sort > 0 || t->at + 100 > LIST_LIMIT ? LIST_MORE : LIST_LIMIT;
    if (t->ended) {
        f->limit += ENDED_LIMIT;
        json_object_set_new(params, "all", json_true());
        json_object_set_new(params, "ended_room", json_integer(ENDED_LIMIT));
    }
    json_object_set_new(params, "limit", json_integer((json_int_t)f->limit));
    return params;
}

/* The user's own failures; root's view has all users'. */
static json_t *
failed_params(void)
{
    auto_account struct account account = ACCOUNT_INIT;
    bool is_one = getuid() != 0 && account_by_uid(getuid(), &account);
    json_t *params =
        json_pack("{s:[s,s,s,s,s], s:b, s:[s,s,s,s,s], s:I, s:i}", "fields", "id", "array_job",
                  "array_task", "state", "array", "ended", 1, "state", "FAILED", "TIMEOUT",
                  "OUT_OF_MEMORY", "INFEASIBLE", "LOST", "since_us",
                  (json_int_t)(clock_wall_us() - FAILED_US), "limit", FAILED_LIMIT);

    if (is_one)
        json_object_set_new(params, "user", json_string(account.name));
    return params;
}

static json_t *
params_of(struct top_feed *f, enum question q)
{
    if (q == ASK_JOBS)
        return jobs_params(f);
    if (q == ASK_FAILED)
        return failed_params();
    if (q == ASK_FOLLOW)
        return json_pack("{s:i, s:b}", "since", 0, "follow", 1);
    if (q == ASK_EXPLAIN)
        return json_pack("{s:[o]}", "select", json_sprintf("%u", f->explained));
    if (q == ASK_SERIES)
        return json_pack("{s:b, s:I, s:i}", "gpus", 1, "since_us",
                         (json_int_t)(clock_wall_us() - PAST_US), "points", PAST_POINTS);
    return NULL;
}

static void
lose(struct top_feed *f, const struct err *e)
{
    client_free(f->client);
    f->client = NULL;
    f->retry_us = f->now_us + RETRY_US;
    f->changed = true;
    if (f->asked[ASK_DO].id)
        top_say(
            f->top, true,
            "the daemon exited before it answered; check whether the command was carried out");
    top_lose(f->top, e->text);
}

static void
ask(struct top_feed *f, enum question q)
{
    static const char *const methods[] = {
        [ASK_GPUS] = "gpus",       [ASK_STATUS] = "status", [ASK_JOBS] = "jobs",
        [ASK_EXPLAIN] = "explain", [ASK_SERIES] = "series", [ASK_FOLLOW] = "events",
        [ASK_HEALTH] = "health",   [ASK_FAILED] = "jobs",
    };
    struct asked *a = &f->asked[q];
    struct err e;

    if (q == ASK_EXPLAIN) {
        f->explained = f->top->selected;
        a->due_us = INT64_MAX;
        if (!f->explained)
            return;
    }
    a->due_us = q == ASK_HEALTH                                       ? f->now_us + HEALTH_US
                : q == ASK_GPUS                                       ? f->now_us + FIGURES_US
                : q == ASK_JOBS || q == ASK_STATUS || q == ASK_FAILED ? f->now_us + AGAIN_US
                                                                      : INT64_MAX;
    a->at_us = f->now_us;
    a->id = client_send(f->client, methods[q], params_of(f, q), &e);
    if (a->id < 0) {
        a->id = 0;
        lose(f, &e);
    }
}

static void
begin(struct top_feed *f)
{
    f->top->connected = true;
    free(f->top->trouble);
    f->top->trouble = NULL;
    for (int q = 0; q < QUESTIONS; q++)
        f->asked[q] = (struct asked){.due_us = q == ASK_DO ? INT64_MAX : 0};
    client_listen(f->client, on_event, on_answer, f);
    client_listen_text(f->client, on_text);
}

static void
connect_again(struct top_feed *f)
{
    struct err e = {0};

    f->client = connect_running(f->cli, &e);
    f->changed = true;
    if (f->client)
        begin(f);
    else
        lose(f, &e);
}

/* Measures how long the oldest answer has been due, to detect a daemon that is connected but
 * silent. */
static void
measure_silence(struct top_feed *f)
{
    int64_t oldest_us = f->now_us;

    for (int q = 0; q < QUESTIONS; q++) {
        if (f->asked[q].id && f->asked[q].at_us < oldest_us)
            oldest_us = f->asked[q].at_us;
    }
    f->top->silent_ms = (f->now_us - oldest_us) / 1000;
}

/* Requests GPU figures each second as long as they can change without an event. */
static void
ask_what_is_due(struct top_feed *f)
{
    if (f->explained != f->top->selected)
        want(f, ASK_EXPLAIN, 0);
    for (int q = 0; q < ASK_DO && f->client; q++) {
        if (!f->asked[q].id && f->asked[q].due_us <= f->now_us)
            ask(f, (enum question)q);
    }
}

static int
next_ms(const struct top_feed *f)
{
    int64_t next_us = f->client ? f->now_us + FIGURES_US : f->retry_us;

    for (int q = 0; q < ASK_DO && f->client; q++) {
        if (!f->asked[q].id && f->asked[q].due_us < next_us)
            next_us = f->asked[q].due_us;
    }
    return next_us <= f->now_us ? 0 : (int)((next_us - f->now_us) / 1000 + 1);
}

int
top_feed_run(struct top_feed *f)
{
    struct err e;

    f->now_us = clock_boot_us();
    if (f->client && client_pump(f->client, &e) < 0)
        lose(f, &e);
    if (!f->client && f->now_us >= f->retry_us)
        connect_again(f);
    if (f->client) {
        measure_silence(f);
        ask_what_is_due(f);
    }
    return next_ms(f);
}

void
top_feed_do(struct top_feed *f, const char *method, json_t *params, const char *done)
{
    struct asked *a = &f->asked[ASK_DO];
    struct err e;

    if (!f->client || a->id) {
        json_decref(params);
        top_say(f->top, true,
                f->client ? "the daemon has not answered the last command yet"
                          : "no daemon is running");
        return;
    }
    free(f->done);
    f->done = xstrdup(done);
    a->at_us = f->now_us;
    a->id = client_send(f->client, method, params, &e);
    if (a->id < 0) {
        a->id = 0;
        lose(f, &e);
    }
    want_all(f, SETTLE_US);
}

void
top_feed_refresh(struct top_feed *f)
{
    want_all(f, 0);
}
