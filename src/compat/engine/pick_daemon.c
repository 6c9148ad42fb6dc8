/* Finds, starts and ends the daemon behind a front end; see pick_daemon.h. */
#include "compat/engine/pick_daemon.h"

#include <dirent.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/machine_turn.h"
#include "wire/client.h"
#include "wire/places.h"

#define LOCK_PREFIX   "berth-gpu-"
#define HOLDER_MAX    8192  /* bytes read from a lock file */
#define LEAVE_MS      10000 /* upper bound; an idle daemon stops at once */
#define LEAVE_STEP_MS 1000
#define AGAIN_TRIES   10
#define AGAIN_MS      200
#define REVIVE_TRIES  25
#define START_TRIES   300 /* it may wait for a driver */

static const char *
of_environment(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* True if the daemon has jobs other than held ones, which it keeps across a restart. Also true
 * if it does not answer. */
static bool
is_in_use(struct client *c)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *row;

    if (client_call(c, "jobs", json_pack("{s:[s]}", "fields", "state"), &result, NULL) < 0)
        return true;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        const char *state = json_string_value(json_array_get(row, 0));

        if (!state || strcmp(state, "HELD") != 0)
            return true;
    }
    return false;
}

/* Stop the daemon and wait until it closes the connection, at most LEAVE_MS. */
static void
end_daemon(struct client *c)
{
    int64_t until = clock_boot_us() + LEAVE_MS * 1000LL;

    if (client_call(c, "stop", NULL, NULL, NULL) < 0)
        return;
    while (clock_boot_us() < until && client_wait(c, LEAVE_STEP_MS, NULL) == 0)
        continue;
}

static void
name_own(struct compat_link *l, const struct compat_home *home)
{
    l->own = true;
    l->dir = xasprintf("%s/.berth", home->root);
    l->cli = (struct cli){.dir = l->dir};
    l->args = (struct daemon_args){.sim = home->sim,
                                   .settings = home->settings,
                                   .system = home->system,
                                   .need_gpus = true};
}

/* The tool's own daemon, if jobs were left in it: only that daemon knows how they end,
 * whichever other daemon has started meanwhile. */
static struct client *
connect_left(struct compat_link *l, const struct compat_home *home)
{
    auto_free char *dir = xasprintf("%s/.berth", home->root);
    auto_client struct client *c = connect_trusted_at(dir);

    if (!c || !is_in_use(c))
        return NULL;
    name_own(l, home);
    return TAKE(c);
}

/* Connect to the tool's own daemon or start it. If it runs without jobs, restart it: its
 * settings and GPUs may be those of an earlier run. */
static int
open_own(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    bool started = false;

    name_own(l, home);
    if (file_mkdirs(home->root, 0777, e) < 0 ||
        file_mkdirs(l->dir, home->system ? 0755 : 0700, e) < 0)
        return -1;
    l->client = connect_or_start(&l->cli, &l->args, &started, e);
    if (!l->client)
        return -1;
    if (started || is_in_use(l->client))
        return 0;
    end_daemon(l->client);
    client_free(l->client);
    l->client = connect_or_start(&l->cli, &l->args, NULL, e);
    return l->client ? 0 : -1;
}

/* The instance that holds a GPU, from the lock file: "alice uid 1000 pid 77 state
 * /x/.berth/state". NULL: the file does not name one. */
static char *
holder_of(int dir, const char *lock)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *state = NULL;
    const char *at;
    char *slash;

    if (strncmp(lock, LOCK_PREFIX, sizeof LOCK_PREFIX - 1) != 0 ||
        file_read_locked_at(dir, lock, HOLDER_MAX, &text, NULL) <= 0)
        return NULL;
    at = strstr(buf_str(&text), " state ");
    if (!at)
        return NULL;
    state = xstrndup(at + 7, strcspn(at + 7, "\n"));
    slash = strrchr(state, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return TAKE(state);
}

/* A daemon that holds GPUs of this machine and that we may use. */
static struct client *
connect_holder(char **where)
{
    auto_dir DIR *dir = opendir(places_lock_dir());
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_free char *root = holder_of(dirfd(dir), entry->d_name);
        struct client *c = root ? connect_trusted_at(root) : NULL;

        if (c) {
            *where = TAKE(root);
            return c;
        }
    }
    return NULL;
}

/* A real GPU belongs to one daemon. If the same user's daemon from another folder has the
 * GPUs, submit jobs there: both runs then share the GPUs and one ledger. */
static int
open_own_or_join(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    char *where = NULL;

    if (open_own(l, home, e) == 0)
        return 0;
    if (home->sim)
        return -1;
    l->client = connect_holder(&where);
    if (!l->client)
        return -1;
    free(l->dir);
    l->dir = where;
    l->cli = (struct cli){.dir = l->dir};
    l->args = (struct daemon_args){.need_gpus = true};
    l->own = false;
    return 0;
}

/* The daemon named by the environment, started if it is not running. */
static int
open_named(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    l->args = (struct daemon_args){
        .sim = of_environment("BERTH_SIM"), .system = home->system, .need_gpus = true};
    l->cli.dir = of_environment("BERTH_DIR");
    if (home->system)
        l->args.settings = home->settings;
    l->client = connect_or_start(&l->cli, &l->args, NULL, e);
    return l->client ? 0 : -1;
}

static struct client *
connect_shared(const struct compat_link *l, bool system)
{
    return system ? client_connect(PLACES_SYSTEM_SOCKET, NULL)
                  : connect_machine_or_own(&l->cli);
}

/* Front ends block these signals and handle them between steps. */
static bool
is_told_to_stop(void)
{
    sigset_t set;

    return sigpending(&set) == 0 &&
           (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
            sigismember(&set, SIGHUP) == 1);
}

/* How often to try the machine's daemon, which does not answer; 0: it is not expected. i: the
 * number of this try; *begun: of the last one at which it was starting. */
static int
machine_tries(int i, int *begun)
{
    struct machine m = machine_look();

    if (m.state == MACHINE_STARTING) {
        *begun = i;
        return START_TRIES;
    }
    return m.soon ? *begun + REVIVE_TRIES : 0;
}

/* Connect to the machine's daemon, or the user's; none is not an error. If the system socket
 * exists but nothing listens, its daemon died and is being restarted; or it is starting: wait,
 * since it has this user's jobs and the GPUs. With `system`, a single user's daemon would not
 * do, since it cannot serve the others. */
static int
open_shared(struct compat_link *l, bool system, struct err *e)
{
    l->client = connect_shared(l, system);
    for (int i = 0, begun = 0, tries; !l->client && (tries = machine_tries(i, &begun)) > 0;
         i++) {
        if (i >= tries) {
            cli_say("it has not come back; going on without it");
            return 0;
        }
        if (i == 0)
            cli_say("nobody answers at %s; waiting %d s for the daemon of this machine",
                    PLACES_SYSTEM_SOCKET, tries * AGAIN_MS / 1000);
        poll(NULL, 0, AGAIN_MS);
        if (is_told_to_stop())
            return err_set(e, ERR_FAILED, "stopped while the daemon of this machine is away");
        l->client = connect_shared(l, system);
    }
    return 0;
}

int
compat_link_open(struct compat_link *l, const struct compat_home *home, struct err *e)
{
    struct compat_home with = *home;

    *l = (struct compat_link){0};
    if (!with.sim && !of_environment("BERTH_SOCKET") && !of_environment("BERTH_DIR"))
        with.sim = of_environment("BERTH_SIM");
    l->cli.socket = of_environment("BERTH_SOCKET");
    if (!home->sim && (l->cli.socket || of_environment("BERTH_DIR")))
        return open_named(l, home, e);
    l->cli.socket = NULL;
    l->client = connect_left(l, &with);
    if (l->client)
        return 0;
    if (!with.sim && open_shared(l, home->system, e) < 0)
        return -1;
    if (!l->client)
        return open_own_or_join(l, &with, e);
    /* If this daemon restarts, wait for the same one: its jobs must not go to another
     * daemon. */
    if (strcmp(client_path(l->client), PLACES_SYSTEM_SOCKET) == 0)
        l->cli.socket = PLACES_SYSTEM_SOCKET;
    else
        l->args.own = true; /* as above */
    return 0;
}

int
compat_link_again(struct compat_link *l, struct err *e)
{
    int tries = l->cli.socket ? 1 : AGAIN_TRIES; /* nothing to start */

    client_free(l->client);
    l->client = NULL;
    for (int i = 0; i < tries && !l->client; i++) {
        /* A daemon that died for lack of disk space or memory may start a moment later. */
        if (i > 0)
            poll(NULL, 0, AGAIN_MS);
        l->client = connect_or_start(&l->cli, &l->args, NULL, e);
    }
    return l->client ? 0 : -1;
}

void
compat_link_close(struct compat_link *l)
{
    if (l->client && l->own && !is_in_use(l->client))
        end_daemon(l->client);
    client_free(l->client);
    free(l->dir);
    *l = (struct compat_link){0};
}
