/* `gpusched`: a file of shell commands, placed by free GPU memory, as gpusched 0.4.0 (and
 * 0.3.0, of which that is a superset) has it, to the byte of its options, lines, journal, board
 * and names of logs. This file reads the options and loops; gpusched.h says who does the rest.
 * Jobs are the daemon's: when this process dies they go on, and the same command finds them
 * again. */
#include "cli/compat/gpusched.h"

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
#include "cli/cli.h"
#include "cli/compat/compat.h"
#include "cli/compat/pyarg.h"
#include "cli/compat/pytext.h"
#include "cli/compat/records.h"
#include "wire/client.h"

#define SETTINGS       5
#define SAMPLE_MIN_MS  50
#define SAMPLE_MAX_MS  1000
#define POLL_MIN_US    20000
#define STOP_WAIT_US   (GS_GRACE_US + 5000000)
#define INTERRUPTED    130
#define RECONNECTS_MAX 5

enum {
    ARG_HELP,
    ARG_GPUS,
    ARG_IDLE,
    ARG_MARGIN,
    ARG_TOLERANCE,
    ARG_POLL,
    ARG_SPIKE,
    ARG_EXCLUSIVE,
    ARG_LOG_DIR,
    ARG_WATCH,
    ARG_OOM,
    ARG_FRESH,
    ARG_VERBOSE,
    ARG_SIM,
    ARG_VERSION,
    ARG_FILE,
    ARGS
};

#define ROW(name, letter, type, metavar, help)                                                 \
    {                                                                                          \
        name, letter, type, metavar, help, NULL, false                                         \
    }

static const struct pyarg args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_GPUS] = ROW("--gpus", NULL, PYARG_STR, "0,1,3",
                     "comma-separated GPU indices to use (default: all visible)"),
    [ARG_IDLE] = ROW("--idle-threshold", NULL, PYARG_INT, "MIB",
                     "GPU counts as idle below this usage, for undeclared jobs (default: 200)"),
    [ARG_MARGIN] = ROW("--margin", NULL, PYARG_INT, "MIB",
                       "safety margin added to every vram declaration (default: 512)"),
    [ARG_TOLERANCE] = ROW("--tolerance", NULL, PYARG_FLOAT, "FRAC",
                          "relative band before flagging over/under-declaration (default: "
                          "0.10)"),
    [ARG_POLL] = ROW("--poll", NULL, PYARG_FLOAT, "SEC",
                     "seconds between two looks at running jobs (default: 5); starts and ends "
                     "do not wait for them"),
    [ARG_SPIKE] = ROW("--spike-buffer", NULL, PYARG_FLOAT, "FRAC",
                      "headroom over the observed VRAM maxima of fluctuating processes "
                      "(default: 0.10)"),
    [ARG_EXCLUSIVE] = ROW("--exclusive", NULL, PYARG_FLAG, NULL,
                          "one scheduled job per GPU, even if declarations fit"),
    [ARG_LOG_DIR] = ROW("--log-dir", NULL, PYARG_STR, NULL,
                        "logs of the jobs, journal and status board (default: gpusched_logs)"),
    [ARG_WATCH] = ROW("--watch", NULL, PYARG_FLAG, NULL,
                      "stay after the queue drains, for lines to come"),
    [ARG_OOM] = ROW("--oom-retries", NULL, PYARG_INT, "N",
                    "CUDA-OOM auto-retries of jobs that say fewer (default: 0)"),
    [ARG_FRESH] =
        ROW("--fresh", NULL, PYARG_FLAG, NULL, "remove the journal first: re-run everything"),
    [ARG_VERBOSE] =
        ROW("--verbose", "-v", PYARG_FLAG, NULL, "say live per-job VRAM usage as peaks grow"),
    [ARG_SIM] = ROW("--sim", NULL, PYARG_INT, "N_GPUS",
                    "run on N simulated 24 GB GPUs; pair with 'python -m gpusched.simjob'"),
    [ARG_VERSION] = ROW("--version", NULL, PYARG_VERSION, "gpusched " GS_VERSION,
                        "show program's version number and exit"),
    [ARG_FILE] =
        ROW("jobs_file", NULL, PYARG_STR, NULL, "file with one shell command per line"),
    [ARGS] = {0},
};

static const struct pyarg_parser parser = {
    .prog = "gpusched",
    .about = "VRAM-aware GPU job scheduler, served by Berth. One shell command per line; "
             "'[vram=18G] python train.py' declares the most VRAM that a job needs, '[vram=30G "
             "gpus=2] torchrun ...' several GPUs. Declared jobs share GPUs with room for them, "
             "others get an idle GPU.",
    .args = args,
};

/* "gpusched: words" to standard error; the status. */
__attribute__((format(printf, 2, 3))) static int
fail(int status, const char *fmt, ...)
{
    auto_buf struct buf out = BUF_INIT;
    va_list ap;

    buf_adds(&out, "gpusched: ");
    va_start(ap, fmt);
    buf_addv(&out, fmt, ap);
    va_end(ap);
    buf_addc(&out, '\n');
    (void)file_write_all(STDERR_FILENO, out.data, out.len);
    return status;
}

/* ------------------------------------------------------------------- options */

static int
read_gpus(const char *text, struct gs_options *o)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ","))) {
        int64_t index;

        if (!py_int(piece, &index))
            return fail(1, "--gpus: '%s' is no list of GPU indices; write 0,1,3", text);
        if (index >= 0 && index < GPU_MAX)
            o->devices |= UINT64_C(1) << index;
    }
    o->gpus_said = true;
    return 0;
}

static int64_t
int_or(const struct pyarg_value *v, int64_t otherwise)
{
    return v->text ? v->i : otherwise;
}

static double
float_or(const struct pyarg_value *v, double otherwise)
{
    return v->text ? v->f : otherwise;
}

static int
take_options(const struct pyarg_value *v, struct gs_options *o)
{
    *o = (struct gs_options){
        .jobs_path = v[ARG_FILE].text,
        .log_dir = v[ARG_LOG_DIR].text ? v[ARG_LOG_DIR].text : "gpusched_logs",
        .idle_mib = int_or(&v[ARG_IDLE], 200),
        .margin_mib = int_or(&v[ARG_MARGIN], 512),
        .oom_retries = int_or(&v[ARG_OOM], 0),
        .tolerance = float_or(&v[ARG_TOLERANCE], 0.10),
        .poll_s = float_or(&v[ARG_POLL], 5.0),
        .spike_buffer = float_or(&v[ARG_SPIKE], 0.10),
        .exclusive = v[ARG_EXCLUSIVE].text,
        .watch = v[ARG_WATCH].text,
        .fresh = v[ARG_FRESH].text,
        .verbose = v[ARG_VERBOSE].text,
        .simulated = v[ARG_SIM].text,
        .sim = v[ARG_SIM].i,
    };
    if (o->margin_mib < 0 || o->margin_mib > VRAM_MAX_MIB || o->idle_mib > VRAM_MAX_MIB)
        return fail(2, "--margin and --idle-threshold are MiB of a GPU, from 0 to %d",
                    VRAM_MAX_MIB);
    if (!(o->poll_s >= 0) || o->poll_s > 1e6)
        return fail(2, "--poll is a number of seconds");
    if (o->simulated && (o->sim < 1 || o->sim > GPU_MAX))
        return fail(2, "--sim simulates 1 to %d GPUs", GPU_MAX);
    return v[ARG_GPUS].text && v[ARG_GPUS].text[0] ? read_gpus(v[ARG_GPUS].text, o) : 0;
}

/* ------------------------------------------------------------------ its places */

static char *
absolute(const char *path)
{
    auto_free char *real = realpath(path, NULL);
    auto_free char *here = getcwd(NULL, 0);

    if (real)
        return TAKE(real);
    return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", here ? here : "", path);
}

static void
find_places(struct gpusched *g)
{
    g->log_root = absolute(g->opt.log_dir);
    g->journal_path = py_path(g->opt.log_dir, "journal.jsonl");
    g->board_path = py_path(g->opt.log_dir, "status.txt");
    /* Whoever shares the journal shares the lines' identities. */
    g->sync_path = xasprintf("%s/journal.jsonl", g->log_root);
}

/* Two with one journal would start everything twice. Returns the descriptor; -1, said. */
static int
lock_places(struct gpusched *g, int *status)
{
    auto_free char *path = xasprintf("%s/.gpusched.lock", g->opt.log_dir);
    struct err e = {0};
    bool held = false;
    int fd = -1;

    if (file_mkdirs(g->opt.log_dir, 0777, &e) == 0)
        fd = records_lock(path, &held, &e);
    if (fd < 0 && held)
        *status = fail(1,
                       "another gpusched works with %s; append your lines to its jobs file, or "
                       "name another folder with --log-dir",
                       g->opt.log_dir);
    else if (fd < 0)
        *status = fail(1, "%s", e.text);
    return fd;
}

/* What the options mean for a daemon of its own. */
static double
clamp(double v, double least, double most)
{
    return v < least ? least : v > most ? most : v;
}

static int
open_session(struct gpusched *g, struct err *e)
{
    double sample_ms = clamp(g->opt.poll_s * 1000, SAMPLE_MIN_MS, SAMPLE_MAX_MS);
    auto_free char *sim =
        g->opt.simulated ? xasprintf("%lldx%dM", (long long)g->opt.sim, GS_SIM_MIB) : NULL;
    auto_free char *module = xasprintf("%s/.berth/python", g->log_root);
    auto_free char *sample = xasprintf("sample_ms=%.0f", sample_ms);
    auto_free char *margin = xasprintf("margin_mib=%lld", (long long)g->opt.margin_mib);
    auto_free char *tolerance = xasprintf("tolerance=%.6f", clamp(g->opt.tolerance, 0, 1));
    auto_free char *spike = xasprintf("spike_buffer=%.6f", clamp(g->opt.spike_buffer, 0, 10));
    const char *settings[SETTINGS] = {sample, margin, tolerance, spike, NULL};
    const struct compat_home home = {.root = g->log_root, .sim = sim, .settings = settings};

    if (compat_open(&g->session, &home, e) < 0)
        return -1;
    return g->session.link.own && g->session.link.args.sim ? gs_offer_module(module, e) : 0;
}

/* ------------------------------------------------------------------ the loop */

static bool
any_running(const struct gpusched *g)
{
    return g->n_running > 0;
}

/* Ctrl-C: what waits is taken out, what runs is ended, and awaited for as long as that may
 * take. The journal keeps it as begun, so the next run runs it again. */
static int
interrupt(struct gpusched *g)
{
    int64_t until = clock_boot_us() + STOP_WAIT_US;
    json_t *ids = json_array();
    auto_json json_t *result = NULL;
    struct gs_job *job, *next;
    struct err e = {0};

    gs_warn(g, "interrupted — terminating running jobs");
    gs_flush(g);
    g->leaving = true;
    HASH_ITER(by_id, g->ids, job, next)
    {
        if (job->run)
            json_array_append_new(ids, json_integer(job->id));
    }
    if (compat_sync(&g->session, g->sync_path, NULL, 0, false, &result, &e) < 0 ||
        compat_cancel(&g->session, json_incref(ids), &e) < 0)
        fail(1, "%s", e.text);
    json_decref(ids);
    while (any_running(g) && clock_boot_us() < until) {
        int woke = compat_wait(&g->session, until);

        gs_take_events(g);
        if (woke & WOKE_LOST || (woke & WOKE_SIGNAL && compat_signal(&g->session)))
            break;
    }
    return INTERRUPTED;
}

/* Its jobs and its queue are the daemon's and go on. */
static int
leave(struct gpusched *g, int sig)
{
    gs_warn(g, "stopped by signal %d — the jobs go on; the same command finds them again", sig);
    gs_flush(g);
    return 128 + sig;
}

/* Finds or starts the daemon again, and tells it everything once more. */
static int
mend(struct gpusched *g, struct err *e)
{
    for (int i = 0; i < RECONNECTS_MAX; i++) {
        g->following = false;
        g->sync_due = true;
        if (compat_again(&g->session, e) == 0 && gs_tick(g, e) == 0 &&
            gs_look_at_running(g, e) == 0)
            return 0;
        if (e->code != ERR_UNREACHABLE)
            return -1;
    }
    return -1;
}

static bool
is_drained(struct gpusched *g)
{
    return g->n_pending == 0 && g->n_running == 0;
}

static int64_t
next_due(const struct gpusched *g, int64_t round_us)
{
    return g->board_due_us && g->board_due_us < round_us ? g->board_due_us : round_us;
}

static void
draw_if_due(struct gpusched *g, bool now)
{
    if (!now && (!g->board_due_us || clock_boot_us() < g->board_due_us))
        return;
    gs_flush(g);
    g->board_due_us = 0;
    gs_draw_board(g);
}

/* What has come up since the last wait. */
static int
work(struct gpusched *g, int woke, bool round, struct err *e)
{
    auto_buf struct buf words = BUF_INIT;

    gs_take_events(g);
    if (woke & WOKE_LOST)
        return mend(g, e);
    if (woke & WOKE_FILE || (round && g->empty_seen))
        (void)gs_read_file(g, false, &words);
    if (round && gs_look_at_running(g, e) < 0)
        return -1;
    return gs_tick(g, e);
}

static int
follow(struct gpusched *g)
{
    int64_t poll_us = (int64_t)(g->opt.poll_s * 1e6);
    int64_t round_us = clock_boot_us() + (poll_us > POLL_MIN_US ? poll_us : POLL_MIN_US);
    struct err e = {0};

    for (;;) {
        int woke, sig;
        bool round;

        if (is_drained(g) && !g->opt.watch)
            return gs_summary(g);
        if (is_drained(g) && !g->wait_said)
            gs_say(g, "queue drained — watching jobs file for new lines (Ctrl-C to stop)");
        g->wait_said = is_drained(g);
        gs_flush(g);
        woke = compat_wait(&g->session, next_due(g, round_us));
        if (woke & WOKE_SIGNAL && (sig = compat_signal(&g->session)) != 0)
            return sig == SIGINT ? interrupt(g) : leave(g, sig);
        round = clock_boot_us() >= round_us;
        if (round)
            round_us = clock_boot_us() + (poll_us > POLL_MIN_US ? poll_us : POLL_MIN_US);
        if (work(g, woke, round, &e) < 0 && (e.code != ERR_UNREACHABLE || mend(g, &e) < 0)) {
            gs_flush(g);
            return fail(err_exit_status(e.code), "%s", e.text);
        }
        draw_if_due(g, round);
    }
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
        if (g->totals[i] >= 0)
            buf_addf(&list, "%s%d", list.len ? ", " : "", i);
    }
    gs_say(g, "discovered GPUs: [%s]", buf_str(&list));
}

static int
begin(struct gpusched *g)
{
    auto_buf struct buf why = BUF_INIT;
    struct err e = {0};
    int n;

    say_queued(g);
    if (open_session(g, &e) < 0)
        return fail(1, "%s", e.text);
    compat_watch(&g->session, g->opt.jobs_path);
    n = gs_read_cards(g, &why, &e);
    if (n == -2) {
        gs_warn(g, "GPU query failed (%s); attempt 1", buf_str(&why));
        gs_flush(g);
        return fail(1, "no GPU can be used: %s; --sim 2 simulates two", buf_str(&why));
    }
    if (n < 0)
        return fail(err_exit_status(e.code), "%s", e.text);
    say_cards(g);
    /* What was executed before we followed is seen by looking. */
    if (gs_recall(g, &e) < 0 || gs_tick(g, &e) < 0 || gs_look_at_running(g, &e) < 0) {
        gs_flush(g);
        return fail(err_exit_status(e.code), "%s", e.text);
    }
    draw_if_due(g, true);
    return follow(g);
}

static void
release(struct gpusched *g)
{
    struct gs_job *job, *next;

    compat_close(&g->session);
    HASH_CLEAR(by_id, g->ids);
    HASH_ITER(hh, g->jobs, job, next)
    {
        HASH_DEL(g->jobs, job);
        free(job->run);
        free(job->command);
        free(job);
    }
    gs_jobs_free(&g->specs);
    buf_free(&g->last_text);
    buf_free(&g->said_broken);
    buf_free(&g->journal);
    buf_free(&g->out);
    free(g->results);
    free(g->pending);
    free(g->journal_path);
    free(g->board_path);
    free(g->log_root);
    free(g->sync_path);
}

static int
load(struct gpusched *g)
{
    auto_buf struct buf words = BUF_INIT;
    int rc = gs_read_file(g, true, &words);

    if (rc == -1)
        return fail(2, "cannot read jobs file: %s", buf_str(&words));
    if (rc < 0)
        return fail(2, "%s", buf_str(&words));
    if (g->specs.n == 0 && !g->opt.watch)
        return fail(2, "jobs file contains no jobs (use --watch to wait for some)");
    return 0;
}

/* With the lock: the journal, then everything else. */
static int
run(struct gpusched *g)
{
    struct err e = {0};
    int status = 0;
    auto_close int lock = lock_places(g, &status);

    if (lock < 0)
        return status;
    if (g->opt.fresh && unlink(g->journal_path) < 0 && errno != ENOENT)
        return fail(1, "cannot remove %s: %s", g->journal_path, strerror(errno));
    if (gs_journal_load(g, &e) < 0)
        return fail(1, "%s", e.text);
    status = begin(g);
    if (g->session.events)
        gs_draw_board(g);
    return status;
}

int
compat_gpusched(int argc, char **argv)
{
    struct gpusched g = {.session = {.signals = -1}};
    struct pyarg_value v[ARGS];
    int status;

    if (pyarg_read(&parser, argc, argv, v, &status) == PYARG_EXIT)
        return status;
    status = take_options(v, &g.opt);
    if (status == 0) {
        find_places(&g);
        status = load(&g);
        if (status == 0)
            status = run(&g);
    }
    release(&g);
    return status;
}
