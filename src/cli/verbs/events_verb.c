/* `berth events`: the stream of events, one JSON object per line, as the daemon stores them.
 * History is fetched in parts, so that it may exceed the length of one answer. A follower that
 * loses the daemon (it restarted, or disconnected a client with too much unread output) asks
 * the next one for the events after the last one printed: none is missed or repeated. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/ask/moment.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "wire/client.h"

#define PART     5000
#define RETRY_MS 250 /* while no daemon is running */

enum { OPT_FOLLOW, OPT_SINCE, OPT_KIND, OPT_USER };

static const struct opt options[] = {
    {"follow", 'f', NULL, "continue with new events, across restarts of the daemon"},
    {"since", 's', "WHEN", "after the event with this number, or from a time on: 2h, 16:00"},
    {"kind", 'k', "KINDS", "only these: ended,started"},
    {"user", 'u', "NAME", "only events of this user's jobs"},
    {0},
};

static const struct page page = {
    .usage = "berth events [SEL...] [-f] [--since WHEN] [--kind KINDS] [--user NAME]",
    .about =
        "Print what happened (to these jobs), one JSON object per line, oldest first. With -f\n"
        "alone, only new events.",
    .options = options,
};

struct stream {
    struct cli *cli;
    json_t *filter; /* part of every request */
    int64_t since;  /* last one printed; 0: none; -1: only new events */
    int64_t since_us;
    bool follow;
    struct buf out;
    bool broken; /* the reader has closed */
};

/* --- printing --- */

static void
print_event(struct stream *s, const json_t *event)
{
    auto_free char *text = json_dumps(event, JSON_COMPACT);
    int64_t seq = answer_int(event, "seq", 0);

    if (!text)
        return;
    text_add_json(&s->out, text, strlen(text));
    buf_addc(&s->out, '\n');
    if (seq > 0)
        s->since = seq;
}

static void
flush(struct stream *s)
{
    if (cli_put(&s->out) != 0)
        s->broken = true;
    buf_clear(&s->out);
}

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    struct stream *s = ctx;

    if (strcmp(method, "event") != 0)
        return;
    print_event(s, params);
    flush(s);
}

/* --- requests --- */

/* Adds the starting point in the protocol's terms: there 0 means only new events, and a
 * missing value means from the first. */
static void
add_since(const struct stream *s, json_t *params)
{
    if (s->since_us > 0)
        json_object_set_new(params, "since_us", json_integer(s->since_us));
    else if (s->since != 0)
        json_object_set_new(params, "since", json_integer(s->since > 0 ? s->since : 0));
}

/* Warns that events may have been deleted before we could read them. */
static void
say_gap(const struct stream *s, const json_t *result)
{
    int64_t first = answer_int(result, "first", 0);

    if (s->since > 0 && first > s->since + 1)
        cli_say("events %lld to %lld have been deleted (keep_events)", (long long)s->since + 1,
                (long long)first - 1);
}

/* Fetches and prints one part of the stored events. Returns 1 if there are more, 0 if not, -1
 * on error. */
static int
print_part(struct stream *s, struct client *c, bool follow, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *params = json_copy(s->filter), *event;
    size_t i;

    add_since(s, params);
    if (follow)
        json_object_set_new(params, "follow", json_true());
    else
        json_object_set_new(params, "limit", json_integer(PART));
    if (client_call(c, "events", params, &result, e) < 0)
        return -1;
    say_gap(s, result);
    s->since_us = 0;
    json_array_foreach(json_object_get(result, "events"), i, event)
    {
        print_event(s, event);
    }
    s->since = answer_int(result, "next", s->since);
    flush(s);
    return answer_bool(result, "more");
}

/* Prints new events until the daemon or the reader closes. Polls the output too: on a quiet
 * machine there may be nothing to write for hours, and a closed pipe would go unnoticed. */
static int
follow_events(struct stream *s, struct client *c, struct err *e)
{
    struct pollfd fds[2] = {{.fd = client_fd(c), .events = POLLIN}, {.fd = STDOUT_FILENO}};

    while (!s->broken) {
        if (client_pump(c, e) < 0)
            return -1;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait");
        if (fds[1].revents & (POLLERR | POLLHUP))
            s->broken = true;
    }
    return 0;
}

static int
print_events(struct stream *s, struct client *c, struct err *e)
{
    int more = 1;

    client_listen(c, on_notify, NULL, s);
    while (s->since >= 0 && more == 1 && !s->broken)
        more = print_part(s, c, false, e);
    if (more < 0)
        return -1;
    if (!s->follow || s->broken)
        return 0;
    return print_part(s, c, true, e) < 0 ? -1 : follow_events(s, c, e);
}

/* Waits for the next daemon; NULL if the reader closes first, or with e for another reason. */
static struct client *
await_daemon(struct stream *s, struct err *e)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};

    for (;;) {
        struct client *c = connect_running(s->cli, e);
        if (c || e->code != ERR_UNREACHABLE)
            return c;
        if (poll(&reader, 1, RETRY_MS) > 0 && reader.revents & (POLLERR | POLLHUP)) {
            s->broken = true;
            return NULL;
        }
    }
}

static int
run_stream(struct stream *s, struct client *first)
{
    struct err e = {0};
    struct client *c = first;
    int rc = print_events(s, c, &e);

    while (rc < 0 && s->follow && e.code == ERR_UNREACHABLE && !s->broken) {
        struct err again = {0};
        client_free(c);
        c = await_daemon(s, &again);
        rc = c ? 0 : s->broken ? 0 : -1;
        e = again;
        if (c)
            rc = print_events(s, c, &e);
    }
    client_free(c);
    buf_free(&s->out);
    return rc < 0 ? cli_fail(&e) : cli_output_status();
}

/* --- the command line --- */

/* A number is an event's; any other text is a time in the past. */
static int
read_since(const char *text, struct stream *s, struct err *e)
{
    if (text[0] && !text[strspn(text, "0123456789")])
        return parse_int(text, 0, INT64_MAX, &s->since, e);
    if (moment_read(text, &s->since_us, e) < 0)
        return -1;
    if (s->since_us > clock_wall_us())
        return err_set(e, ERR_USAGE, "'%s' is in the future", text);
    s->since = 0;
    if (s->since_us <= 0)
        s->since_us = 1;
    return 0;
}

/* Resolves the words to the ids of the jobs that they select now. */
static int
read_jobs(struct client *c, const struct opt_reader *r, json_t *filter, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *params, *row, *ids;
    size_t i;

    if (r->n_words == 0)
        return 0;
    params = ask_select(r->words, r->n_words);
    json_object_set_new(params, "all", json_true());
    json_object_set_new(params, "fields", json_pack("[s]", "id"));
    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    json_object_set_new(filter, "machine", json_false());
    ids = json_array();
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        json_array_append(ids, json_array_get(row, 0));
    }
    return json_object_set_new(filter, "jobs", ids);
}

static json_t *
split_kinds(const char *list)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy;
    json_t *kinds = json_array();

    while (rest)
        json_array_append_new(kinds, json_string(strsep(&rest, ",")));
    return kinds;
}

static int
take_option(int opt, const char *value, struct stream *s)
{
    struct err e;

    if (opt == OPT_FOLLOW)
        s->follow = true;
    else if (opt == OPT_KIND)
        json_object_set_new(s->filter, "kinds", split_kinds(value));
    else if (opt == OPT_USER)
        json_object_set_new(s->filter, "user", json_string(value));
    else if (read_since(value, s, &e) < 0)
        return cli_usage("--since: %s", e.text);
    return 0;
}

int
cmd_events(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    auto_json json_t *filter = json_object();
    struct stream s = {.cli = cli, .filter = filter, .since = -1};
    struct client *c;
    int opt, status;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        status = take_option(opt, r.value, &s);
        if (status)
            return status;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (!s.follow && s.since < 0)
        s.since = 0;
    ask_say_no_user(json_string_value(json_object_get(filter, "user")));
    c = connect_daemon(cli, &e);
    if (!c || read_jobs(c, &r, filter, &e) < 0) {
        client_free(c);
        return cli_fail(&e);
    }
    return run_stream(&s, c);
}
