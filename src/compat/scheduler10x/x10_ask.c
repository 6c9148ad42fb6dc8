/* Commands of `scheduler_10x` that act on a running scheduler: they find it by its state file,
 * whose lock names the process, and talk to its daemon. They report success only after the
 * effect. x10_add.c has `add`, x10_show.c and x10_status.c the commands that only print. */
#include <libgen.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/answer_pages.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"
#include "wire/client.h"
#include "wire/places.h"

#define PATH_BYTES 4096

#define PAUSE_TRIES   200
#define PAUSE_STEP_MS 50

#define CANCEL_GRACE_MS 5000 /* from SIGTERM to SIGKILL, as in the original */
#define CANCEL_WAIT_MS  (CANCEL_GRACE_MS + 5000)

int
x10_fail(const char *fmt, ...)
{
    auto_buf struct buf words = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&words, fmt, ap);
    va_end(ap);
    (void)compat_say("❌ %s", buf_str(&words));
    return 1;
}

/* --- finding the scheduler --- */

/* File that names the state file of the scheduler the user started last. */
static char *
register_path(void)
{
    struct places p;
    char *path;

    if (places_find(NULL, &p, NULL) < 0)
        return NULL;
    path = xasprintf("%s.scheduler_10x", p.socket);
    places_free(&p);
    return path;
}

void
x10_register(const char *state_file)
{
    auto_free char *path = register_path();
    auto_free char *real = realpath(state_file, NULL);
    auto_free char *for_dir = path ? xstrdup(path) : NULL;

    if (!path || !real || file_mkdirs(dirname(for_dir), 0700, NULL) < 0)
        return;
    (void)file_write_atomic_at(-100, path, real, strlen(real), 0600, false, NULL);
}

static char *
registered(void)
{
    auto_free char *path = register_path();
    auto_buf struct buf text = BUF_INIT;

    if (!path || file_read(path, PATH_BYTES, &text, NULL) < 0 || text.len == 0)
        return NULL;
    return buf_take(&text);
}

void
x10_unregister(const char *state_file)
{
    auto_free char *path = register_path();
    auto_free char *real = realpath(state_file, NULL);
    auto_free char *said = registered();

    if (path && real && said && strcmp(real, said) == 0)
        (void)unlink(path);
}

void
x10_find(struct x10 *x, const struct x10_config *c, bool anywhere)
{
    *x = (struct x10){.state_file = xstrdup(c->sched.state_file),
                      .jobs_file = xstrdup(c->sched.jobs_file)};
    x->about = sched_owner(x->state_file);
    if (!x->about && anywhere) {
        auto_free char *other = registered();
        json_t *about = other ? sched_owner(other) : NULL;

        if (about) {
            free(x->state_file);
            x->state_file = TAKE(other);
            x->about = about;
        }
    }
    if (!x->about)
        return;
    x->tag = xstrdup(answer_str(x->about, "tag"));
    x->client = sched_connect(x->state_file);
}

void
x10_free(struct x10 *x)
{
    free(x->state_file);
    free(x->jobs_file);
    free(x->tag);
    json_decref(x->about);
    client_free(x->client);
    *x = (struct x10){0};
}

int
x10_nobody(const struct x10 *x, const char *what)
{
    return x10_fail("%s: %s", what,
                    x->about ? "the daemon of the scheduler cannot be reached"
                             : "no scheduler runs here; 'scheduler_10x start' starts one");
}

/* --- jobs --- */

json_t *
x10_live_jobs(const struct x10 *x, struct err *e)
{
    return sched_live_jobs(x->client, x->tag, e);
}

json_t *
x10_ended_jobs(const struct x10 *x, int64_t since_us, int64_t most, json_t *fields,
               struct err *e)
{
    auto_json json_t *names = fields, *result = NULL;
    auto_free char *tag = xasprintf("tag:%s", x->tag);
    auto_buf struct buf text = BUF_INIT;

    if (pages_ask(x->client,
                  json_pack("{s:[s],s:O,s:I}", "select", tag, "fields", names, "since_us",
                            (json_int_t)since_us),
                  most, &text, e) < 0)
        return NULL;
    result = json_loadb(text.data, text.len, 0, NULL);
    return sched_objects(json_object_get(result, "rows"), names);
}

char *
x10_script_of(const json_t *job)
{
    double need;
    char *script = sched_script_of(answer_str(job, "command"), &need);

    return script ? script : xstrdup(answer_str(job, "name"));
}

/* --- pausing, cancelling --- */

static int
count_gpus(const struct x10 *x)
{
    struct sched_state state;

    if (x->about)
        return (int)answer_int(x->about, "n_gpus", 0);
    if (sched_state_read(x->state_file, &state, NULL) == 0 && state.n > 0)
        return state.n;
    return sched_count_cards();
}

/* Only an administrator of the daemon may pause a GPU for all users; otherwise the scheduler
 * pauses it for its own jobs. False: it has not done so yet. */
static bool
await_scheduler(const struct x10 *x, int64_t gpu, bool pause)
{
    for (int i = 0; i < PAUSE_TRIES; i++) {
        auto_json json_t *about = sched_owner(x->state_file);
        uint64_t paused = (uint64_t)answer_int(about, "paused_alone", 0);

        if (!about || (paused >> gpu & 1) == pause)
            return true;
        poll(NULL, 0, PAUSE_STEP_MS);
    }
    return false;
}

int
x10_pause(const struct x10 *x, int64_t gpu, bool pause)
{
    auto_free char *reason = pause && x->client ? sched_pause_reason(x->tag) : NULL;
    const char *word = pause ? "pause" : "resume";
    int n = count_gpus(x);
    struct err e = {0};

    if (n == 0)
        return x10_fail("Failed to %s GPU %lld: this machine shows none", word, (long long)gpu);
    if (gpu < 0 || gpu >= n)
        return x10_fail("Failed to %s GPU %lld: there are 0 to %d", word, (long long)gpu,
                        n - 1);
    if (sched_state_pause(x->state_file, (int)gpu, n, pause, &e) < 0)
        return x10_fail("Failed to %s GPU %lld: %s", word, (long long)gpu, e.text);
    /* The scheduler would do this within a second; do it now, before reporting success. */
    if (x->client &&
        client_call(x->client, pause ? "gpu.pause" : "gpu.resume",
                    json_pack("{s:[I],s:s*}", "gpus", (json_int_t)gpu, "reason", reason), NULL,
                    &e) < 0 &&
        e.code == ERR_PERMISSION && !await_scheduler(x, gpu, pause))
        return x10_fail("GPU %lld is not %sd yet: the scheduler that runs here has not "
                        "answered; it will %s it",
                        (long long)gpu, word, word);
    return compat_say("✅ GPU %lld %sd%s", (long long)gpu, word,
                      x->about ? ""
                               : " (no scheduler runs here: it holds from the next start)");
}

static const json_t *
tags_of_first(const json_t *found)
{
    return json_object_get(json_array_get(json_object_get(found, "jobs"), 0), "tags");
}

int
x10_cancel(const struct x10 *x, const char *id)
{
    auto_json json_t *found = NULL, *result = NULL;
    struct err e = {0};
    int64_t number;

    if (!x->client)
        return x10_nobody(x, "Failed to cancel job");
    if (parse_int(id, 1, UINT32_MAX, &number, NULL) < 0)
        return x10_fail("Failed to cancel job %s: there is no such job", id);
    if (client_call(x->client, "jobs", json_pack("{s:[s],s:b}", "select", id, "all", 1), &found,
                    &e) < 0 ||
        !answer_has_word(tags_of_first(found), x->tag))
        return x10_fail("Failed to cancel job %s: there is no such job", id);
    if (client_call(x->client, "cancel",
                    json_pack("{s:[s],s:i}", "select", id, "grace_ms", CANCEL_GRACE_MS),
                    &result, &e) < 0)
        return x10_fail("Failed to cancel job %s: %s", id, e.text);
    if (json_array_size(json_object_get(result, "ids")) == 0)
        return x10_fail("Failed to cancel job %s: it has ended already", id);
    client_set_patience(x->client, CANCEL_WAIT_MS);
    if (client_call(x->client, "wait", json_pack("{s:[s]}", "select", id), NULL, &e) < 0)
        return x10_fail("Job %s is asked to end, but it has not yet: %s", id, e.text);
    return compat_say("✅ Job %s cancelled", id);
}

int
x10_screens(const struct x10 *x)
{
    auto_buf struct buf out = BUF_INIT;

    buf_adds(&out, "🖥️  Active screen sessions\n");
    sched_add_screens(&out, x->client, "", "No active screen sessions found.\n");
    return cli_put(&out);
}
