/* `berth events`: the stream of what happened, one JSON object a line, as the daemon keeps
 * it. History is fetched in parts, so that it may be longer than one answer can be. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/opt.h"
#include "wire/client.h"

#define PART 5000

enum { OPT_FOLLOW, OPT_SINCE };

static const struct opt options[] = {
    {"follow", 'f', NULL, "go on with what happens from now"},
    {"since", 's', "SEQ", "what came after the event with this number"},
    {0},
};

static const struct page page = {
    .usage = "berth events [-f] [--since SEQ]",
    .about = "What happened, one JSON object a line, oldest first. With -f alone: from now on.",
    .options = options,
};

struct printer {
    struct buf out;
    bool broken;
};

static void
print_event(struct printer *p, const json_t *event)
{
    auto_free char *text = json_dumps(event, JSON_COMPACT);

    if (!text)
        return;
    buf_adds(&p->out, text);
    buf_addc(&p->out, '\n');
}

static void
flush(struct printer *p)
{
    if (cli_put(&p->out) != 0)
        p->broken = true;
    buf_clear(&p->out);
}

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    struct printer *p = ctx;

    if (strcmp(method, "event") != 0)
        return;
    print_event(p, params);
    flush(p);
}

/* One part of history: prints it, moves *since on. Returns how many, -1 on error. */
static int
print_part(struct client *c, struct printer *p, int64_t *since, bool follow, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *params = json_object();
    json_t *event;
    size_t i;

    if (*since >= 0)
        json_object_set_new(params, "since", json_integer(*since));
    if (follow)
        json_object_set_new(params, "follow", json_true());
    else
        json_object_set_new(params, "limit", json_integer(PART));
    if (client_call(c, "events", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "events"), i, event)
    {
        print_event(p, event);
        *since = answer_int(event, "seq", *since);
    }
    flush(p);
    return (int)i;
}

/* What comes, until the daemon or the reader has gone: on a quiet machine there may be nothing
 * to write for hours by which a closed pipe would be noticed. */
static int
follow_events(struct client *c, struct printer *p, struct err *e)
{
    struct pollfd fds[2] = {{.fd = client_fd(c), .events = POLLIN}, {.fd = STDOUT_FILENO}};

    while (!p->broken) {
        if (client_pump(c, e) < 0)
            return -1;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait");
        if (fds[1].revents & (POLLERR | POLLHUP))
            p->broken = true;
    }
    return 0;
}

static int
print_events(struct client *c, int64_t since, bool follow, struct err *e)
{
    struct printer p = {0};
    int rc = 0;
    int n = PART;

    client_listen(c, on_notify, NULL, &p);
    /* From now on is since 0; anything else is history first. */
    while (since != 0 && n == PART && !p.broken) {
        n = print_part(c, &p, &since, false, e);
        rc = n < 0 ? -1 : 0;
    }
    if (rc == 0 && follow)
        rc = print_part(c, &p, &since, true, e) < 0 ? -1 : 0;
    if (rc == 0 && follow)
        rc = follow_events(c, &p, e);
    buf_free(&p.out);
    return p.broken ? 0 : rc;
}

int
cmd_events(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    auto_client struct client *c = NULL;
    bool follow = false;
    int64_t since = -1;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_FOLLOW)
            follow = true;
        else if (parse_int(r.value, 0, INT64_MAX, &since, &e) < 0)
            return cli_usage("--since: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    /* On the command line 0 is "after none": all of them. */
    if (since <= 0)
        since = follow && since < 0 ? 0 : -1;
    c = connect_daemon(cli, &e);
    if (!c)
        return cli_fail(&e);
    return print_events(c, since, follow, &e) < 0 ? cli_fail(&e) : cli_output_status();
}
