/* `start` of the drop-in schedulers: finds or starts a daemon, submits the jobs file, and
 * mirrors the results to log and state file until a signal. It sleeps until something happens;
 * a changed file is read within a second. */
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/verbs/screens_verb.h"
#include "compat/engine/compat_paths.h"
#include "compat/scheduler/scheduler.h"
#include "wire/client.h"
#include "wire/places.h"

/* Wait beyond the grace period: on a busy machine the end of a killed job may be seen late,
 * and reporting it as still running would be wrong. */
#define STOP_SLACK_US 20000000
#define ROUND_MIN_US  100000
#define RETRY_US      5000000

/* --- places --- */

/* "berth" if the one in PATH is the one beside this program, which keeps listings short; else
 * its path. */
static char *
find_berth(struct err *e)
{
    auto_free char *found = places_program("berth", e);
    auto_free char *ours = found ? realpath(found, NULL) : NULL;
    struct stat our, other;

    if (!found)
        return NULL;
    if (!ours || stat(ours, &our) < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot look at %s", found);
        return NULL;
    }
    for (const char *at = getenv("PATH"); at && *at; at += strspn(at, ":")) {
        size_t len = strcspn(at, ":");
        auto_free char *path = xasprintf("%.*s/berth", (int)len, at);

        at += len;
        if (stat(path, &other) < 0)
            continue;
        return our.st_ino == other.st_ino && our.st_dev == other.st_dev ? xstrdup("berth")
                                                                        : TAKE(ours);
    }
    return TAKE(ours);
}

static int
find_places(struct sched *s, struct err *e)
{
    const char *state_file = s->config.state_file;
    auto_free char *state = compat_absolute(state_file), *for_dir = xstrdup(state);
    char digest[13];

    s->root = xstrdup(dirname(for_dir));
    s->sync_path =
        s->config.jobs_file[0] ? compat_absolute(s->config.jobs_file) : xstrdup(state);
    s->jobs_mark.shown = s->config.jobs_file;
    s->berth = find_berth(e);
    text_sha1_12(state, strlen(state), digest);
    s->tag = xasprintf("scheduler-%s", digest);
    s->log_dir = sched_log_dir(e);
    return s->berth && s->log_dir && s->sync_path[0] == '/' ? 0 : -1;
}

/* How commands and the next start reach the same daemon. Without a folder, note the socket:
 * another daemon may come up, or another environment name a different one. */
static json_t *
reach(const struct sched *s)
{
    const struct compat_link *link = &s->session.link;
    const char *socket =
        link->cli.socket || link->cli.dir ? link->cli.socket : client_path(link->client);
    auto_free char *llm = compat_absolute(s->config.llm_file);
    auto_free char *jobs = s->config.jobs_file[0] ? compat_absolute(s->config.jobs_file) : NULL;

    return json_pack("{s:i,s:I,s:s*,s:s*,s:s*,s:s,s:s,s:s}", "pid", (int)getpid(), "started_us",
                     (json_int_t)s->started_us, "dir", link->cli.dir, "socket", socket,
                     "jobs_file", jobs, "llm_file", llm, "tag", s->tag, "self", s->berth);
}

/* reach() and the rules that `add` needs. */
static json_t *
about(const struct sched *s)
{
    const struct sched_config *c = &s->config;
    json_t *paths = c->allowed_paths ? json_array() : NULL, *all = reach(s);
    json_t *rules = json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:i,s:i,s:b,s:f,s:f,s:f}", "paused_alone",
        (json_int_t)s->paused_alone, "queue_max", (json_int_t)c->queue_max, "limit_ms",
        (json_int_t)c->limit_ms, "mem_mib", (json_int_t)c->mem_mib, "stop_ms",
        (json_int_t)c->stop_ms, "retries", c->retries, "n_gpus",
        64 - __builtin_clzll(s->managed), "screen", c->screen, "mem_threshold",
        c->mem_threshold, "load_threshold", c->load_threshold, "precision", c->precision);

    for (char **path = c->allowed_paths; path && *path; path++)
        json_array_append_new(paths, json_string(*path));
    if (paths)
        json_object_set_new(rules, "allowed_paths", paths);
    json_object_update(all, rules);
    json_decref(rules);
    return all;
}

void
sched_tell_about(struct sched *s)
{
    if (s->is_ready && !s->leaving)
        (void)sched_own_tell(s->lock, about(s), true, NULL);
}

/* --- the loop --- */

static int
update(struct sched *s, struct err *e)
{
    while (s->sync_due) {
        if (sched_sync(s, e) < 0)
            return -1;
        sched_take_events(s);
    }
    return 0;
}

/* Report an error that may pass, such as a full disk, and retry with the next look. Only a
 * lost daemon is returned as an error. */
static int
bear(struct sched *s, int rc, struct err *e)
{
    if (rc < 0 && e->code == ERR_UNREACHABLE)
        return -1;
    if (rc < 0 && (!s->complaint || strcmp(s->complaint, e->text) != 0))
        sched_log(&s->log, SCHED_ERROR, NULL, "%s; it is tried again every %d s", e->text,
                  RETRY_US / 1000000);
    free(s->complaint);
    s->complaint = rc < 0 ? xstrdup(e->text) : NULL;
    if (rc < 0)
        s->look_due_us = clock_boot_us() + RETRY_US;
    return 0;
}

static int
retell(void *sched, struct err *e)
{
    struct sched *s = sched;

    sched_log(&s->log, SCHED_WARNING, NULL, "The daemon had gone, and is found again");
    /* Jobs to run again may have done so without an event; the daemon's answer tells. */
    for (struct sched_job *job = s->jobs; job; job = job->hh.next)
        job->again = false;
    sched_tell_all(s);
    return bear(s, update(s, e) < 0 || sched_cards_look(s, e) < 0 ? -1 : 0, e);
}

static int64_t
round_of(double seconds)
{
    int64_t us = seconds < 1e6 ? (int64_t)(seconds * 1e6) : (int64_t)1e12;

    return clock_boot_us() + (us > ROUND_MIN_US ? us : ROUND_MIN_US);
}

static int
do_due(struct sched *s, int woke, struct err *e)
{
    int64_t now = clock_boot_us();
    bool scan = now >= s->scan_us, look = now >= s->round_us;

    if (scan)
        s->scan_us = round_of(s->config.monitor_s);
    if (look)
        s->round_us = round_of(s->config.state_s);
    s->sync_due |= (woke & WOKE_ROOM) != 0;
    sched_take_events(s);
    /* First apply pauses, then start jobs: a user who paused a card and then added a line
     * expects that order. */
    s->file_due |= (woke & WOKE_FILE) != 0;
    if ((s->file_due || look) && sched_cards_look(s, e) < 0)
        return -1;
    if ((s->file_due && run_file_has_changed(&s->jobs_mark)) || (scan && s->missing))
        sched_load(s);
    s->file_due = false;
    if (update(s, e) < 0)
        return -1;
    if (s->look_due_us && clock_boot_us() >= s->look_due_us && sched_cards_look(s, e) < 0)
        return -1;
    return update(s, e);
}

static int
work(void *sched, int woke, int *status, struct err *e)
{
    (void)status;
    return bear(sched, do_due(sched, woke, e), e);
}

static int64_t
next_due(void *sched)
{
    const struct sched *s = sched;
    int64_t until = s->scan_us < s->round_us ? s->scan_us : s->round_us;

    return s->look_due_us && s->look_due_us < until ? s->look_due_us : until;
}

/* End running jobs and wait for a limited time; a second signal ends the wait. */
static int
leave(struct sched *s)
{
    struct err e = {0};
    int left;

    if (s->on_leave)
        s->on_leave(s);
    (void)sched_own_tell(s->lock, reach(s), false, NULL); /* `add` is refused from now on */
    sched_log(&s->log, SCHED_INFO, NULL, "Stopping...");
    left = compat_end(&s->session, s->config.stop_ms * 1000 + STOP_SLACK_US, &e);
    if (left < 0) {
        sched_log(&s->log, SCHED_ERROR, NULL, "%s", e.text);
        return 1;
    }
    if (sched_cards_look(s, &e) < 0)
        sched_log(&s->log, SCHED_WARNING, NULL, "%s", e.text);
    return left;
}

static int
on_signal(void *sched, int number)
{
    return number == SIGHUP ? -1 : leave(sched);
}

static int
follow(struct sched *s)
{
    struct err e = {0};
    int status;

    s->scan_us = round_of(s->config.monitor_s);
    s->round_us = round_of(s->config.state_s);
    status = compat_run(&s->session, &e);
    if (status >= 0)
        return status;
    sched_log(&s->log, SCHED_ERROR, NULL, "%s", e.text);
    return 1;
}

/* --- the start --- */

static void
load_table(struct sched *s)
{
    auto_buf struct buf why = BUF_INIT;

    if (!sched_table_load(&s->table, s->config.llm_file, &why))
        sched_log(&s->log, SCHED_WARNING, NULL, "%s", buf_str(&why));
}

static void
check_screen(struct sched *s)
{
    struct err e = {0};

    if (!s->config.screen || screens_need(&e) == 0)
        return;
    s->config.screen = false;
    sched_log(&s->log, SCHED_ERROR, NULL,
              "There is no GNU screen here (package 'screen'); jobs run without it");
}

static int
begin(struct sched *s, const char *const *settings, const json_t *last, struct err *e)
{
    static const struct compat_front front = {
        .kinds = {"started", "requeued", "ended", "gpu"},
        .work = work,
        .until = next_due,
        .retell = retell,
        .signalled = on_signal,
        .take_events = sched_take_events,
        .stop = sched_stop,
        .any_left = sched_any_to_await,
        .fill = sched_fill_request,
        .entered = sched_entered,
        .found = sched_found,
        .adopt = sched_adopt,
        .refused = sched_refused,
    };
    const struct compat_home home = {.root = s->root, .settings = settings};

    s->session.front = &front;
    s->session.ctx = s;
    s->session.path = s->sync_path;
    s->session.all_jobs = s->config.is_10x; /* jobs of `add` belong to no file */
    check_screen(s);
    if (compat_open(&s->session, &home, e) < 0 ||
        sched_check_left(last, s->session.link.client, s->tag, e) < 0 ||
        sched_cards_read(s, e) < 0 || sched_own_tell(s->lock, reach(s), false, e) < 0)
        return -1;
    if (s->config.n_gpus > __builtin_popcountll(s->exist))
        sched_log(&s->log, SCHED_WARNING, NULL, "There are %d GPUs here, not %d",
                  __builtin_popcountll(s->exist), s->config.n_gpus);
    load_table(s);
    if (s->config.jobs_file[0])
        compat_watch(&s->session, s->config.jobs_file);
    compat_watch(&s->session, s->config.state_file);
    /* Pauses first, then starts. */
    sched_tell_all(s);
    if (sched_cards_look(s, e) < 0)
        return -1;
    sched_load(s);
    if ((s->config.is_10x && sched_recall_added(s, e) < 0) || update(s, e) < 0)
        return -1;
    return sched_cards_look(s, e);
}

static int
fail(struct sched *s, const struct err *e)
{
    s->failure = xstrdup(e->text);
    sched_log(&s->log, SCHED_ERROR, NULL, "%s", e->text);
    return 1;
}

int
sched_start(struct sched *s, const char *const *settings, int (*on_ready)(struct sched *s))
{
    struct err e = {0};
    auto_close int lock = -1;
    auto_json json_t *last = NULL;
    int status;

    s->started_us = clock_wall_us();
    if (find_places(s, &e) < 0)
        return fail(s, &e);
    lock = sched_own(s->config.state_file, &last, &e);
    if (lock < 0)
        return fail(s, &e);
    s->lock = lock;
    if (begin(s, settings, last, &e) < 0 || sched_own_tell(lock, about(s), true, &e) < 0)
        status = fail(s, &e);
    else
        status = on_ready(s);
    s->is_ready = status == 0;
    if (status == 0)
        status = follow(s);
    compat_close(&s->session);
    return status;
}

void
sched_free(struct sched *s)
{
    struct sched_job *job = s->jobs, *next;

    HASH_CLEAR(hh, s->jobs);
    for (; job; job = next) {
        next = job->hh.next;
        sched_spec_free(&job->spec);
        free(job);
    }
    json_decref(s->said);
    json_decref(s->table.models);
    free(s->root);
    free(s->sync_path);
    free(s->log_dir);
    free(s->berth);
    free(s->tag);
    free(s->failure);
    free(s->complaint);
}
