/* Finding, starting and ending the daemon behind a front end; see home.h. */
#include "cli/compat/home.h"

#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/answer.h"
#include "wire/client.h"

#define LEAVE_MS      10000 /* an idle daemon is gone in a moment */
#define LEAVE_STEP_MS 1000
#define AGAIN_TRIES   10
#define AGAIN_MS      200

static const char *
of_environment(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* Jobs that wait or run in it; -1 when it does not say. */
static int64_t
count_live(struct client *c)
{
    auto_json json_t *result = NULL;
    json_t *params = json_pack("{s:[s]}", "fields", "id");

    if (client_call(c, "jobs", params, &result, NULL) < 0)
        return -1;
    return (int64_t)json_array_size(json_object_get(result, "rows"));
}

/* Asks it to go and waits until it has: its end is the end of the connection. */
static void
end_daemon(struct client *c)
{
    int64_t until = clock_boot_us() + LEAVE_MS * 1000LL;

    if (client_call(c, "stop", NULL, NULL, NULL) < 0)
        return;
    while (clock_boot_us() < until && client_wait(c, LEAVE_STEP_MS, NULL) == 0)
        continue;
}

/* The tool's own. One that nobody uses may have been started for something else. */
static int
open_own(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    bool started = false;

    l->own = true;
    l->dir = xasprintf("%s/.berth", home->root);
    l->cli = (struct cli){.dir = l->dir};
    l->args = (struct daemon_args){.sim = home->sim, .settings = home->settings};
    if (file_mkdirs(home->root, 0777, e) < 0 || file_mkdirs(l->dir, 0700, e) < 0)
        return -1;
    l->client = connect_or_start(&l->cli, &l->args, &started, e);
    if (!l->client)
        return -1;
    if (started || count_live(l->client) != 0)
        return 0;
    end_daemon(l->client);
    client_free(l->client);
    l->client = connect_or_start(&l->cli, &l->args, NULL, e);
    return l->client ? 0 : -1;
}

int
compat_link_open(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    struct compat_home with = *home;

    *l = (struct compat_link){0};
    l->cli.socket = of_environment("BERTH_SOCKET");
    if (!home->sim && (l->cli.socket || of_environment("BERTH_DIR"))) {
        l->client = connect_or_start(&l->cli, NULL, NULL, e);
        return l->client ? 0 : -1;
    }
    l->cli.socket = NULL;
    if (!home->sim)
        with.sim = of_environment("BERTH_SIM");
    if (!with.sim)
        l->client = connect_machine_or_own(&l->cli);
    return l->client ? 0 : open_own(l, &with, e);
}

int
compat_link_again(struct compat_link *l, struct err *e)
{
    client_free(l->client);
    l->client = NULL;
    for (int i = 0; i < AGAIN_TRIES && !l->client; i++) {
        /* A daemon that died of a full disk or of memory may find some a moment later. */
        if (i > 0)
            poll(NULL, 0, AGAIN_MS);
        l->client = connect_or_start(&l->cli, l->own ? &l->args : NULL, NULL, e);
    }
    return l->client ? 0 : -1;
}

void
compat_link_close(struct compat_link *l)
{
    if (l->client && l->own && count_live(l->client) == 0)
        end_daemon(l->client);
    client_free(l->client);
    free(l->dir);
    *l = (struct compat_link){0};
}
