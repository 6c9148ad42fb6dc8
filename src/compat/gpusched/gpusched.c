/* `gpusched`: a file of shell commands, placed by free GPU memory. Options, output, journal,
 * board and log names are byte for byte those of gpusched 0.4.0, a superset of 0.3.0. This
 * file has the main loop; gpusched.h lists the other files. The jobs belong to the daemon: if
 * this process dies they continue, and the same command finds them again. */
#include "compat/gpusched/gpusched.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/engine/compat_paths.h"
#include "compat/engine/takeover.h"
#include "compat/py/pytext.h"

#define SETTINGS      8
#define SAMPLE_MIN_MS 50
#define SAMPLE_MAX_MS 1000
#define POLL_MIN_US   20000
/* for busy machines; a second Ctrl-C ends the wait */
#define STOP_WAIT_US (12 * GS_GRACE_US)
#define INTERRUPTED  130

/* --- folders and settings --- */

static void
find_places(struct gpusched *g)
{
    g->log_root = compat_absolute(g->opt.log_dir);
    g->journal_path = py_path(g->opt.log_dir, "journal.jsonl");
    g->board_path = py_path(g->opt.log_dir, "status.txt");
    if (g->opt.sim.text)
        g->sim = xasprintf("%lldx%dM", (long long)g->opt.sim.i, GS_SIM_MIB);
    /* Runs with the same journal share the identities of lines. */
    g->session.path = g->sync_path = xasprintf("%s/journal.jsonl", g->log_root);
}

/* Two processes with one journal would start everything twice. Returns the descriptor; -1 with
 * e. */
static int
lock_places(struct gpusched *g, struct err *e)
{
    auto_free char *path = xasprintf("%s/.gpusched.lock", g->opt.log_dir);

    if (file_mkdirs(g->opt.log_dir, 0777, e) < 0)
        return -1;
    return compat_lock(path, e,
                       "another gpusched works with %s; append your lines to its jobs file, or "
                       "name another folder with --log-dir",
                       g->opt.log_dir);
}

/* Clamps options to the ranges of the daemon's settings. */
static double
clamp(double v, double least, double most)
{
    return v < least ? least : v > most ? most : v;
}

static int
open_session(struct gpusched *g, struct err *e)
{
    double sample_ms = clamp(g->opt.poll_s * 1000, SAMPLE_MIN_MS, SAMPLE_MAX_MS);
    auto_free char *module = xasprintf("%s/.berth/python", g->log_root);
    char **set = g->settings = xcalloc(SETTINGS, sizeof *set);
    const struct compat_home home = {
        .root = g->log_root, .sim = g->sim, .settings = (const char *const *)set};

    *set++ = xasprintf("sample_ms=%.0f", sample_ms);
    /* Also without jobs of ours, so that memory taken by foreign processes counts for the next
     * line. */
    *set++ = xasprintf("idle_sample_ms=%.0f", sample_ms);
    *set++ = xasprintf("margin_mib=%lld", (long long)g->opt.margin_mib);
    *set++ = xasprintf("tolerance=%.6f", clamp(g->opt.tolerance, 0, 1));
    *set++ = xasprintf("spike_buffer=%.6f", clamp(g->opt.spike_buffer, 0, 10));
    *set++ = xstrdup("aging_s=0");
    *set = xstrdup("order=queue");
    if (compat_open(&g->session, &home, e) < 0)
        return -1;
    return g->session.link.own && g->session.link.args.sim ? gs_offer_module(module, e) : 0;
}

/* --- the loop --- */

/* Remove pending jobs first, then end running ones, including those started in between. */
static int
stop_all(void *gpusched, struct err *e)
{
    struct gpusched *g = gpusched;
    json_t *ids;

    if (compat_clear(&g->session, e) < 0)
        return -1;
    ids = json_array();
    for (size_t i = 0; i < g->n_running; i++)
        json_array_append_new(ids, json_integer(g->running[i]->id));
    return compat_call_for(&g->session, "cancel", ids, NULL, NULL, e);
}

static bool
any_running(const void *gpusched)
{
    return ((const struct gpusched *)gpusched)->n_running > 0;
}

/* Ctrl-C ends all jobs and waits for them. The journal keeps them as started, so the next run
 * starts them again. */
static int
interrupt(struct gpusched *g)
{
    struct err e = {0};

    gs_warn(g, "interrupted — terminating running jobs");
    gs_flush(g);
    g->leaving = true;
    if (compat_end(&g->session, STOP_WAIT_US, &e) >= 0)
        return INTERRUPTED;
    gs_flush(g);
    return compat_fail(err_exit_status(e.code), "gpusched", "%s", e.text);
}

/* Recover an earlier run. Without a journal no line is finished, so the daemon must forget its
 * ended jobs before a new journal exists: were we killed in between, the next run would take
 * the daemon's old results for those of its lines. */
static int
take_up(struct gpusched *g, struct err *e)
{
    if (!g->anew)
        return gs_recall(g, e);
    return compat_forget(&g->session, e) < 0 && e->code != ERR_NO_SPACE ? -1 : 0;
}

/* The jobs and the queue stay in the daemon and continue. */
static int
leave(struct gpusched *g, int number)
{
    gs_warn(g,
            "stopped by signal %d — the jobs go on, and what waits starts; the same command "
            "finds them again, and Ctrl-C there ends them",
            number);
    g->left = true;
    gs_flush(g);
    return 128 + number;
}

static int
on_signal(void *gpusched, int number)
{
    return number == SIGINT ? interrupt(gpusched) : leave(gpusched, number);
}

static int
retell(void *gpusched, struct err *e)
{
    struct gpusched *g = gpusched;

    g->sync_due = true;
    g->drop_due = g->n_unwanted > 0;
    return gs_tick(g, e) < 0 ? -1 : gs_look_at_running(g, e);
}

static bool
is_drained(struct gpusched *g)
{
    return g->n_pending == 0 && g->n_running == 0 && g->n_unwanted == 0;
}

static int64_t
board_due(const struct gpusched *g)
{
    if (!g->board_due_us)
        return INT64_MAX;
    return g->board_due_us > g->board_rest_us ? g->board_due_us : g->board_rest_us;
}

static int64_t
next_due(void *gpusched)
{
    const struct gpusched *g = gpusched;

    int64_t due = board_due(g) < g->round_due_us ? board_due(g) : g->round_due_us;
    int64_t late = gs_late_due(g);

    return late < due ? late : due;
}

static void
draw_if_due(struct gpusched *g, bool round)
{
    if (round && !g->board_due_us)
        g->board_due_us = clock_boot_us();
    if (clock_boot_us() < board_due(g))
        return;
    gs_flush(g);
    gs_draw_board(g);
}

static void
set_round(struct gpusched *g)
{
    int64_t us = (int64_t)(g->opt.poll_s * 1e6);

    g->round_due_us = clock_boot_us() + (us > POLL_MIN_US ? us : POLL_MIN_US);
}

/* One turn of the main loop, after a wait. */
static int
work(void *gpusched, int woke, int *status, struct err *e)
{
    struct gpusched *g = gpusched;
    auto_buf struct buf words = BUF_INIT;
    bool round = clock_boot_us() >= g->round_due_us;

    gs_take_events(g);
    if (round)
        set_round(g);
    if (woke & WOKE_FILE || (round && g->empty_seen))
        (void)gs_read_file(g, false, &words);
    g->sync_due |= (woke & WOKE_ROOM) != 0;
    g->look_due |= round && g->orphans; /* they end without an event */
    if (((round || clock_boot_us() >= gs_late_due(g)) && gs_look_at_running(g, e) < 0) ||
        (round && gs_look_at_disk(g, e) < 0) || gs_tick(g, e) < 0)
        return -1;
    draw_if_due(g, round);
    /* An orphan's line is not done: it runs again once the orphan has ended. */
    if (is_drained(g) && !g->opt.watch && !g->orphans) {
        *status = gs_summary(g);
        return 1;
    }
    if (is_drained(g) && !g->wait_said)
        gs_say(g, "queue drained — watching jobs file for new lines (Ctrl-C to stop)");
    g->wait_said = is_drained(g);
    gs_flush(g);
    return 0;
}

static int
follow(struct gpusched *g)
{
    struct err e = {0};
    int status;

    set_round(g);
    status = compat_run(&g->session, &e);
    if (status >= 0)
        return status;
    gs_flush(g);
    return compat_fail(err_exit_status(e.code), "gpusched", "%s", e.text);
}

static void
say_queued(struct gpusched *g)
{
    auto_buf struct buf poll = BUF_INIT;

    py_add_float(&poll, g->opt.poll_s);
    gs_say(
        g,
        "%zu jobs queued [live queue (file re-read each tick)] (poll every %ss; status board: "
        "%s)",
        g->specs.n, buf_str(&poll), g->board_path);
    gs_flush(g);
}

static void
say_cards(struct gpusched *g)
{
    auto_buf struct buf list = BUF_INIT;

    if (g->opt.gpus_said)
        return;
    for (int i = 0; i < GPU_MAX; i++) {
        if (g->cards.total_mib[i] >= 0)
            buf_addf(&list, "%s%d", list.len ? ", " : "", i);
    }
    gs_say(g, "discovered GPUs: [%s]", buf_str(&list));
}

static int
begin(struct gpusched *g, int lock)
{
    struct err e = {0};
    int n;

    say_queued(g);
    if (open_session(g, &e) < 0)
        return compat_fail(1, "gpusched", "%s", e.text);
    if (compat_take_over(lock, g->session.link.client, g->sync_path, &e) < 0)
        return compat_fail(err_exit_status(e.code), "gpusched", "%s", e.text);
    compat_watch(&g->session, g->opt.jobs_path);
    n = compat_cards_read(&g->cards, g->session.link.client, &e);
    if (n < 0)
        return compat_fail(err_exit_status(e.code), "gpusched", "%s", e.text);
    if (n == 0) {
        gs_warn(g, "GPU query failed (%s); attempt 1", g->cards.why_none);
        gs_flush(g);
        return compat_fail(1, "gpusched", "no GPU can be used: %s; --sim 2 simulates two",
                           g->cards.why_none);
    }
    say_cards(g);
    /* Jobs may have started before we followed events. */
    if (take_up(g, &e) < 0 || gs_tick(g, &e) < 0 || gs_look_at_running(g, &e) < 0) {
        gs_flush(g);
        return compat_fail(err_exit_status(e.code), "gpusched", "%s", e.text);
    }
    draw_if_due(g, true);
    return follow(g);
}

static void
release(struct gpusched *g)
{
    struct gs_job *job = g->jobs, *next;

    compat_close(&g->session);
    HASH_CLEAR(hh, g->jobs);
    for (; job; job = next) {
        next = job->hh.next;
        free(job->run);
        free(job->command);
        free(job);
    }
    gs_jobs_free(&g->specs);
    buf_free(&g->last_text);
    buf_free(&g->said_broken);
    buf_free(&g->trouble);
    buf_free(&g->journal);
    buf_free(&g->out);
    free(g->results);
    free(g->running);
    free(g->starting);
    free(g->touched);
    free(g->journal_path);
    free(g->board_path);
    free(g->log_root);
    free(g->sync_path);
    free(g->sim);
    text_list_free(g->settings);
}

static int
load(struct gpusched *g)
{
    auto_buf struct buf words = BUF_INIT;
    int rc = gs_read_file(g, true, &words);

    if (rc == -1)
        return compat_fail(2, "gpusched", "cannot read jobs file: %s", buf_str(&words));
    if (rc < 0)
        return compat_fail(2, "gpusched", "%s", buf_str(&words));
    if (g->specs.n == 0 && !g->opt.watch)
        return compat_fail(2, "gpusched",
                           "jobs file contains no jobs (use --watch to wait for some)");
    return 0;
}

/* Take the lock, load the journal, then begin. */
static int
run(struct gpusched *g)
{
    struct err e = {0};
    auto_close int lock = lock_places(g, &e);
    int status;

    if (lock < 0)
        return compat_fail(1, "gpusched", "%s", e.text);
    if (g->opt.fresh && unlink(g->journal_path) < 0 && errno != ENOENT)
        return compat_fail(1, "gpusched", "cannot remove %s: %s", g->journal_path,
                           strerror(errno));
    if (gs_journal_load(g, &e) < 0)
        return compat_fail(1, "gpusched", "%s", e.text);
    status = begin(g, lock);
    if (g->session.events)
        gs_draw_board(g);
    gs_flush(g);
    if (g->journal.len > 0)
        compat_fail(status, "gpusched", "%s lacks what happened last, for it cannot be written",
                    g->journal_path);
    return status;
}

int
compat_gpusched(int argc, char **argv)
{
    static const struct compat_front front = {
        .kinds = {"started", "launched", "usage", "requeued", "ended"},
        .work = work,
        .until = next_due,
        .retell = retell,
        .signalled = on_signal,
        .take_events = gs_take_events,
        .stop = stop_all,
        .any_left = any_running,
        .fill = gs_fill_request,
        .entered = gs_entered,
        .found = gs_found,
        .adopt = gs_adopt,
        .known = gs_known,
    };
    struct gpusched g = {.session = {.front = &front, .ctx = &g, .signals = -1}};
    int status = gs_read_options(&g.opt, argc, argv);

    compat_cards_init(&g.cards);
    if (status >= 0)
        return status;
    find_places(&g);
    status = load(&g);
    if (status == 0)
        status = run(&g);
    release(&g);
    return status;
}
