/* `cudaq.py`: runs commands on the GPU with the most free memory and tracks them in a file of
 * JSON lines. It follows the original's documentation: # lines are comments, every job has its
 * own log, and Completed and Failed tell how the command ended. This file reads the command
 * line and has the main loop; cudaq.h lists the other files. */
#include "compat/cudaq/cudaq.h"

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
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/engine/compat_paths.h"
#include "compat/engine/line_records.h"
#include "compat/engine/takeover.h"
#include "compat/py/pyarg.h"

#define NAME "cudaq"

#define SAY_US       300000    /* by then, jobs that fit have started */
#define STOP_WAIT_US 120000000 /* far beyond any grace; a second Ctrl-C ends the wait */
#define POLL_MIN_US  50000
#define INTERRUPTED  130
#define RETRY_US     5000000

enum {
    ARG_HELP,
    ARG_CONFIG,
    ARG_GPUS,
    ARG_MIN,
    ARG_POLL,
    ARG_COMMANDS,
    ARG_LOGS,
    ARG_JOBS,
    ARGS
};

struct said {
    const char *of[ARGS];
};

static const struct pyarg args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = {"--config", PYARG_STR, PYARG_INTO(struct said, of[ARG_CONFIG]),
                    .help = "Path to YAML config file"},
    [ARG_GPUS] = {"--gpu-ids", PYARG_STR, PYARG_INTO(struct said, of[ARG_GPUS]),
                  .help = "Comma-separated GPU IDs to use"},
    [ARG_MIN] = {"--min-free-mem-mb", PYARG_STR, PYARG_INTO(struct said, of[ARG_MIN]),
                 .help = "Minimum free memory in MB to dispatch a job"},
    [ARG_POLL] = {"--poll-interval", PYARG_STR, PYARG_INTO(struct said, of[ARG_POLL]),
                  .help = "Time in seconds between checks"},
    [ARG_COMMANDS] = {"--commands-file", PYARG_STR, PYARG_INTO(struct said, of[ARG_COMMANDS]),
                      .help = "Path to file with commands to run"},
    [ARG_LOGS] = {"--log-dir", PYARG_STR, PYARG_INTO(struct said, of[ARG_LOGS]),
                  .help = "Directory to store job logs"},
    [ARG_JOBS] = {"--jobs-file", PYARG_STR, PYARG_INTO(struct said, of[ARG_JOBS]),
                  .help = "Path to JSONL file tracking jobs"},
    [ARGS] = {0},
};

/* The settings key of each option. */
static const char *const keys[ARGS] = {
    [ARG_GPUS] = "gpu_ids",       [ARG_MIN] = "min_free_mem_mb",
    [ARG_POLL] = "poll_interval", [ARG_COMMANDS] = "commands_file",
    [ARG_LOGS] = "log_dir",       [ARG_JOBS] = "jobs_file",
};

static const struct pyarg nothing[] = {PYARG_HELP_ROW, {0}};
static const struct pyarg_command commands[] = {{"run", "Run the dispatcher loop.", args},
                                                {"status", "Print status of all jobs.", args},
                                                {0}};

/* --- settings --- */

static int
read_config(struct cq_config *c, const struct said *said, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    const char *name = said->of[ARG_CONFIG];

    if (name && access(name, F_OK) == 0 &&
        (file_read(name, INT_MAX, &text, e) < 0 ||
         cq_config_read(c, name, buf_str(&text), text.len, e) < 0))
        return -1;
    for (int i = 0; i < ARGS; i++) {
        if (keys[i] && said->of[i] && cq_config_set(c, keys[i], said->of[i], e) < 0)
            return err_prefix(e, "%s", args[i].name);
    }
    return 0;
}

/* --- the loop --- */

static int
on_signal(void *cudaq, int number)
{
    struct cudaq *q = cudaq;
    struct err e = {0};

    if (number != SIGINT) {
        if (q->count[CQ_RUNNING] + q->count[CQ_PENDING] > 0)
            compat_say("[cudaq] Stopped. %zu running and %zu pending jobs go on without it; "
                       "'status' shows them, 'run' follows them again, and Ctrl-C there ends "
                       "them.",
                       q->count[CQ_RUNNING], q->count[CQ_PENDING]);
        return 128 + number;
    }
    if (compat_end(&q->session, STOP_WAIT_US, &e) < 0)
        compat_fail(1, NAME, "%s", e.text);
    return INTERRUPTED;
}

/* Print what the original prints before each sleep, although here the wait ends with any
 * event. */
static void
say_state(struct cudaq *q)
{
    q->say_due_us = 0;
    if (q->count[CQ_PENDING] == 0)
        compat_say("[cudaq] No pending jobs. Sleeping %ss ...", q->config.poll_text);
    else if (!cq_has_cards(q))
        compat_say("[cudaq] No valid GPUs found. Check your GPU IDs. Sleeping...");
    else if (!q->assigned)
        compat_say("[cudaq] Unable to dispatch any pending jobs; waiting...");
    q->assigned = false;
}

static void
warn_at_start(const struct cudaq *q)
{
    for (int i = 0; i < GPU_MAX; i++) {
        if (q->config.gpus >> i & 1 && q->cards.total_mib[i] < 0)
            compat_say("[Warning] Failed to query GPU %d: there is no such GPU", i);
    }
    if (q->count[CQ_PENDING] == 0 && access(q->config.commands_file, F_OK) < 0)
        compat_say("[Warning] No commands file %s: %s", q->config.commands_file,
                   strerror(errno));
}

/* Bring the daemon's queue into line with the file. */
static int
update(struct cudaq *q, struct err *e)
{
    bool any = q->count[CQ_PENDING] > 0;

    if (!q->sync_due)
        return 0;
    if (compat_cards_read(&q->cards, q->session.link.client, e) < 0 || cq_sync(q, e) < 0)
        return -1;
    if (any && !q->say_due_us)
        q->say_due_us = clock_boot_us() + SAY_US;
    return 0;
}

static int
retell(void *cudaq, struct err *e)
{
    cq_doubt(cudaq);
    return update(cudaq, e);
}

static int
read_files(struct cudaq *q, struct err *e)
{
    return cq_jobs_load(q, e) < 0 || cq_commands_load(q, e) < 0 ? -1 : 0;
}

static bool
is_due(int64_t at_us)
{
    return at_us && clock_boot_us() >= at_us;
}

static void
set_round(struct cudaq *q)
{
    int64_t us = (int64_t)(q->config.poll_s * 1e6);

    q->round_due_us = clock_boot_us() + (us > POLL_MIN_US ? us : POLL_MIN_US);
}

static int
do_due(struct cudaq *q, int woke, struct err *e)
{
    bool had_pending = q->count[CQ_PENDING] > 0, round = is_due(q->round_due_us);

    cq_take_events(q);
    if (is_due(q->old_due_us))
        cq_old_look(q);
    if (round) {
        set_round(q);
        cq_look_at_foreign(q);
        q->sync_due |= had_pending && !cq_fits_somewhere(q);
    }
    q->sync_due |= (woke & WOKE_ROOM) != 0;
    if ((woke & WOKE_FILE || round) && read_files(q, e) < 0)
        return -1;
    if (update(q, e) < 0)
        return -1;
    if (round || is_due(q->say_due_us) || (had_pending && q->count[CQ_PENDING] == 0))
        say_state(q);
    return is_due(q->save_due_us) ? cq_jobs_save(q, e) : 0;
}

/* Failures that may pass, such as a full disk or an unreadable file, are retried. */
static int
work(void *cudaq, int woke, int *status, struct err *e)
{
    struct cudaq *q = cudaq;

    (void)status;
    if (do_due(q, woke, e) == 0)
        return 0;
    if (e->code == ERR_UNREACHABLE)
        return -1;
    if (!q->complaint || strcmp(q->complaint, e->text) != 0)
        compat_say("[Warning] %s", e->text);
    free(q->complaint);
    q->complaint = xstrdup(e->text);
    q->retry_us = clock_boot_us() + RETRY_US;
    return 0;
}

static int64_t
next_due(void *cudaq)
{
    const struct cudaq *q = cudaq;
    const int64_t due[] = {q->save_due_us, q->say_due_us, q->old_due_us};
    int64_t first = q->round_due_us;

    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++)
        first = due[i] && due[i] < first ? due[i] : first;
    return q->retry_us > clock_boot_us() ? q->retry_us : first;
}

static int
follow(struct cudaq *q)
{
    struct err e = {0};
    int status;

    set_round(q);
    status = compat_run(&q->session, &e);
    return status >= 0 ? status : compat_fail(err_exit_status(e.code), NAME, "%s", e.text);
}

static int
begin(struct cudaq *q, int lock)
{
    static const char *const settings[] = {"margin_mib=0", "placement=spread", "aging_s=0",
                                           "order=queue", NULL};
    const struct compat_home home = {.root = q->log_root, .settings = settings};
    struct err e = {0};

    /* min_free_mem_mb is the free memory a job needs to start, not a limit: a memory fraction
     * derived from it (BERTH_DEFAULTS in berth(1)) would starve the job. */
    setenv("BERTH_DEFAULTS", "off", 1);

    if (file_mkdirs(q->config.log_dir, 0777, &e) < 0 || read_files(q, &e) < 0)
        return compat_fail(1, NAME, "%s", e.text);
    compat_say("[cudaq] Starting job dispatch loop.");
    if (compat_open(&q->session, &home, &e) < 0)
        return compat_fail(1, NAME, "%s", e.text);
    if (compat_take_over(lock, q->session.link.client, q->session.path, &e) < 0)
        return compat_fail(err_exit_status(e.code), NAME, "%s", e.text);
    compat_watch(&q->session, q->config.jobs_file);
    compat_watch(&q->session, q->config.commands_file);
    if (compat_cards_read(&q->cards, q->session.link.client, &e) < 0)
        return compat_fail(1, NAME, "%s", e.text);
    warn_at_start(q);
    q->sync_due = true;
    if (update(q, &e) < 0 || cq_jobs_save(q, &e) < 0)
        return compat_fail(1, NAME, "%s", e.text);
    if (q->count[CQ_PENDING] == 0 || !cq_fits_somewhere(q))
        say_state(q);
    return follow(q);
}

static int
run(struct cudaq *q)
{
    auto_free char *path = records_lock_path(q->config.jobs_file);
    struct err e = {0};
    /* Two dispatchers on one file would start everything twice. */
    auto_close int lock =
        compat_lock(path, &e,
                    "another dispatcher works with %s; it picks up records that are appended, "
                    "and commands that are added to its commands file",
                    q->config.jobs_file);
    int status;

    if (lock < 0)
        return compat_fail(1, NAME, "%s", e.text);

    compat_cards_init(&q->cards);
    q->key_base = clock_wall_us();
    cq_find_places(q);
    status = begin(q, lock);
    q->leaving = true;
    cq_old_look(q);
    if (cq_jobs_save(q, &e) < 0)
        compat_fail(1, NAME, "%s", e.text);
    compat_close(&q->session);
    return status;
}

int
compat_cudaq(int argc, char **argv)
{
    const struct pyarg_parser parser = {.prog = compat_name(argv[0]),
                                        .about = "GPU-Aware Job Dispatcher with Persistent "
                                                 "Tracking, served by Berth",
                                        .args = nothing,
                                        .commands = commands,
                                        .dest = "command"};
    static const struct compat_front front = {
        .kinds = {"started", "launched", "requeued", "ended"},
        .work = work,
        .until = next_due,
        .retell = retell,
        .signalled = on_signal,
        .take_events = cq_take_events,
        .stop = cq_stop,
        .any_left = cq_any_running,
        .fill = cq_fill_request,
        .found = cq_found,
        .adopt = cq_take_object,
        .known = cq_known,
    };
    struct cudaq q = {.session = {.front = &front, .ctx = &q, .signals = -1}};
    struct said said = {0};
    struct err e = {0};
    int status, at = pyarg_read(&parser, argc, argv, &said, &status);

    if (at == PYARG_EXIT)
        return status;
    cq_config_init(&q.config);
    status = read_config(&q.config, &said, &e) < 0 ? -1 : at == 0 ? run(&q) : cq_status(&q, &e);
    if (status < 0)
        status = compat_fail(1, NAME, "%s", e.text);
    cq_jobs_free(&q);
    cq_config_free(&q.config);
    return status;
}
