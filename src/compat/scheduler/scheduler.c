/* `scheduler.py`: Python scripts from a file of lines, with fractions of GPUs by model, and a
 * state file that any program may write. This file reads the command line and implements the
 * commands other than `start`; scheduler.h lists the other files. */
#include "compat/scheduler/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/engine/line_records.h"
#include "compat/py/pyarg.h"
#include "wire/client.h"

#define STATE_FILE "gpu_scheduler_state.json"
#define LOG_FILE   "gpu_scheduler.log"

#define STATE_ROW                                                                              \
    {                                                                                          \
        "--state-file", PYARG_STR, PYARG_INTO(struct call, state_file), .hidden = true         \
    }

/* Values of the command line. */
struct call {
    const char *state_file;
    struct sched_config start;
    struct pyarg_value n_gpus, retries;
    int64_t monitor_s, look_s;
    const char *cuda_ids;
    const char *script, *fields[3]; /* add: conda, arguments, GPUs */
    const char *output;
    int64_t priority, gpu;
};

static const struct pyarg globals[] = {
    PYARG_HELP_ROW,
    {"--state-file", PYARG_STR, PYARG_INTO(struct call, state_file),
     .help = "Path to the state file"},
    {0},
};

static const struct pyarg start_args[] = {
    PYARG_HELP_ROW,
    STATE_ROW,
    {"--gpus", PYARG_INT, PYARG_INTO(struct call, n_gpus),
     .help = "Number of GPUs to manage (all)"},
    {"--jobs-file", PYARG_STR, PYARG_INTO(struct call, start.jobs_file),
     .help = "Jobs file to follow; \"\": none (jobs.txt)", .standard = "jobs.txt"},
    {"--llm-config", PYARG_STR, PYARG_INTO(struct call, start.llm_file),
     .help = "What models need (llm_config.json)", .standard = "llm_config.json"},
    {"--screen", PYARG_FLAG, PYARG_INTO(struct call, start.screen),
     .help = "Run each job in a GNU screen session"},
    {"--mem-threshold", PYARG_FLOAT, PYARG_INTO(struct call, start.mem_threshold),
     .help = "GPU memory threshold (0.8)", .standard = "0.8"},
    {"--load-threshold", PYARG_FLOAT, PYARG_INTO(struct call, start.load_threshold),
     .help = "GPU load threshold (0.8)", .standard = "0.8"},
    {"--monitor-interval", PYARG_INT, PYARG_INTO(struct call, monitor_s),
     .help = "Seconds between looks for scripts that were missing; a change of "
             "the jobs file acts at once (30)",
     .standard = "30"},
    {"--state-interval", PYARG_INT, PYARG_INTO(struct call, look_s),
     .help = "Seconds between looks at the GPUs; a change of the state file acts at "
             "once (20)",
     .standard = "20"},
    {"--max-assign-attempts", PYARG_INT,
     .help = "Accepted; a job starts when it fits, without tries"},
    {"--assign-retry-wait", PYARG_INT, .help = "Accepted, as the above"},
    {"--retries", PYARG_INT, PYARG_INTO(struct call, retries),
     .help = "Runs more of a job that fails (3)", .standard = "3"},
    {"--cuda-ids", PYARG_STR, PYARG_INTO(struct call, cuda_ids),
     .help = "What --cuda is given: ids of the machine, or as the job sees them "
             "(physical)",
     .choices = "physical,local", .standard = "physical"},
    {0},
};

static const struct pyarg add_args[] = {
    PYARG_HELP_ROW,
    STATE_ROW,
    {"script", PYARG_STR, PYARG_INTO(struct call, script), .help = "Path to the Python script"},
    {"--conda", PYARG_STR, PYARG_INTO(struct call, fields[0]), .help = "Conda environment"},
    {"--args", PYARG_STR, PYARG_INTO(struct call, fields[1]),
     .help = "Arguments of the script, as one string"},
    {"--priority", PYARG_INT, PYARG_INTO(struct call, priority),
     .help = "Lower runs first (0)"},
    {"--gpus", PYARG_STR, PYARG_INTO(struct call, fields[2]),
     .help = "Allowed GPUs: 0,1 or 0-3"},
    {"--output-file", PYARG_STR, PYARG_INTO(struct call, output),
     .help = "File to append to, - to print (jobs.txt)", .standard = "jobs.txt"},
    {0},
};

static const struct pyarg gpu_args[] = {
    PYARG_HELP_ROW,
    STATE_ROW,
    {"gpu_id", PYARG_INT, PYARG_INTO(struct call, gpu), .help = "The GPU"},
    {0},
};
static const struct pyarg plain_args[] = {PYARG_HELP_ROW, STATE_ROW, {0}};

enum { CMD_START, CMD_ADD, CMD_STATUS, CMD_PAUSE, CMD_RESUME, CMD_SCREENS };
static const struct pyarg_command commands[] = {
    [CMD_START] = {"start", "Start the scheduler", start_args},
    [CMD_ADD] = {"add", "Add a job to the jobs file", add_args},
    [CMD_STATUS] = {"status", "Show the GPUs", plain_args},
    [CMD_PAUSE] = {"pause", "Start nothing more on a GPU", gpu_args},
    [CMD_RESUME] = {"resume", "Use a paused GPU again", gpu_args},
    [CMD_SCREENS] = {"screens", "List screen sessions of jobs", plain_args},
    {0}};

static const struct sched_log quiet_log = {
    .path = LOG_FILE, .logger = "GPUJobScheduler", .level = SCHED_INFO};

/* --- start --- */

static int
on_ready(struct sched *s)
{
    sched_log(&s->log, SCHED_INFO, NULL,
              "Scheduler started with %d GPUs; jobs file: %s; state file: %s; press Ctrl+C to "
              "stop",
              __builtin_popcountll(s->managed),
              s->config.jobs_file[0] ? s->config.jobs_file : "none", s->config.state_file);
    return 0;
}

/* False: the error was printed. */
static bool
check_start(const struct pyarg_parser *p, const struct call *c)
{
    if (c->n_gpus.text && c->n_gpus.i < 1)
        (void)pyarg_error(p, "argument --gpus: at least one GPU is needed, not %s",
                          c->n_gpus.text);
    else if (c->retries.i < 0 || c->retries.i > RETRIES_MAX)
        (void)pyarg_error(p, "argument --retries: from 0 to %d, not %s", RETRIES_MAX,
                          c->retries.text);
    else
        return true;
    return false;
}

static int
start(const struct call *c)
{
    static const char *const settings[] = {"margin_mib=0", "aging_s=0", "order=queue", NULL};
    struct sched s = {.session = {.signals = -1}, .log = quiet_log, .config = c->start};
    int status;

    s.config.state_file = c->state_file;
    s.config.n_gpus = c->n_gpus.i < GPU_MAX ? (int)c->n_gpus.i : GPU_MAX;
    s.config.precision = 0.01;
    s.config.monitor_s = (double)c->monitor_s;
    s.config.state_s = (double)c->look_s;
    s.config.cuda = true;
    s.config.local_cuda = strcmp(c->cuda_ids, "local") == 0;
    s.config.retries = (int)c->retries.i;
    s.config.stop_ms = GRACE_DEFAULT_MS;
    status = sched_start(&s, settings, on_ready);
    sched_free(&s);
    return status;
}

/* --- add --- */

static int
add(const struct call *c)
{
    const char *path = c->output;
    auto_buf struct buf line = BUF_INIT;
    struct err e = {0};
    int rc = sched_line_add(&line, c->priority, c->script, c->fields, &e);

    if (strcmp(path, "-") == 0)
        return rc < 0 ? compat_fail(1, "scheduler.py", "%s", e.text) : cli_put(&line);
    if (rc < 0)
        (void)err_prefix(&e, "%s", path);
    if (rc < 0 || records_append(path, &line, false, &e) < 0) {
        (void)compat_say("Error writing to file %s", e.text);
        return 1;
    }
    return compat_say(
        "Job line appended to: %s\nLine: %.*s\nNOTE: If the scheduler is running with "
        "monitoring enabled, it should pick this up.",
        path, (int)line.len - 1, line.data);
}

/* --- status --- */

/* The scheduler's daemon, else the one that a start would find here. Starts none. */
static struct client *
connect_any(const char *state_file)
{
    struct client *c = sched_connect(state_file);
    const char *sim = getenv("BERTH_SIM");

    return c || (sim && *sim) ? c : connect_daemon(&(struct cli){0}, NULL);
}

static json_t *
ask_cards(const char *state_file)
{
    auto_client struct client *c = connect_any(state_file);
    auto_json json_t *result = NULL;

    if (!c || client_call(c, "gpus", NULL, &result, NULL) < 0)
        return NULL;
    return json_incref(json_object_get(result, "gpus"));
}

static int
count_cards(const char *state_file, const struct sched_state *state)
{
    auto_json json_t *gpus = state->n > 0 ? NULL : ask_cards(state_file);

    if (state->n > 0)
        return state->n;
    return gpus ? (int)json_array_size(gpus) : sched_count_cards();
}

static void
add_percent(struct buf *out, double part)
{
    auto_free char *text = part < 0 ? xstrdup("N/A") : xasprintf("%.1f%%", part * 100);

    buf_addf(out, "%-15s", text);
}

/* As in the original, every column is padded, the last too. */
static void
add_row(struct buf *out, const struct sched_state *s, int i, const json_t *gpu)
{
    auto_free char *busy = xasprintf("BUSY (%.0f%%)", s->alloc[i] * 100);
    auto_free char *alloc = xasprintf("%.2f", s->alloc[i]);
    double total = (double)answer_int(gpu, "total_mib", 0);
    double used = (double)answer_int(gpu, "used_mib", -1);
    int64_t util = answer_int(gpu, "util", -1);

    buf_addf(out, "%-8d%-15s%-12s", i,
             s->paused >> i & 1    ? "PAUSED"
             : s->alloc[i] > 0.001 ? busy
                                   : "AVAILABLE",
             alloc);
    add_percent(out, total > 0 && used >= 0 ? used / total : -1);
    add_percent(out, util >= 0 ? (double)util / 100 : -1);
    buf_addc(out, '\n');
}

static int
status_of(const char *state_file)
{
    auto_json json_t *gpus = ask_cards(state_file);
    auto_buf struct buf out = BUF_INIT;
    struct sched_state state;
    struct err e = {0};
    int n;

    if (sched_state_read(state_file, &state, &e) < 0) {
        sched_log(&quiet_log, SCHED_WARNING, NULL, "%s", e.text);
        state = (struct sched_state){0};
    }
    n = count_cards(state_file, &state);
    buf_addf(&out, "\n--- GPU Status (Based on State File: %s) ---\n", state_file);
    buf_addf(&out, "%-8s%-15s%-12s%-15s%-15s\n", "GPU ID", "State", "Allocation", "Memory Util",
             "Load Util");
    buf_adds(&out, "----------------------------------------------------------------------\n");
    for (int i = 0; i < n; i++)
        add_row(&out, &state, i, json_array_get(gpus, (size_t)i));
    buf_adds(&out,
             "\nNote: Real-time utilization requires GPUtil. Status reflects state file "
             "content.\nJob queue information is only available within the running scheduler "
             "process.\n");
    return cli_put(&out);
}

/* --- pause and resume --- */

static int
not_paused(const char *state_file, int64_t gpu, const char *word, const struct err *e)
{
    (void)compat_say("Failed to update state file '%s' to %s GPU %lld.\n%s", state_file, word,
                     (long long)gpu, e->text);
    return 1;
}

static int
pause_gpu(const char *state_file, int64_t gpu, bool pause)
{
    const char *word = pause ? "pause" : "resume";
    struct sched_state state;
    struct err e = {0};
    int n, was;

    if (sched_state_read(state_file, &state, &e) < 0)
        return not_paused(state_file, gpu, word, &e);
    n = count_cards(state_file, &state);
    if (gpu < 0 || gpu >= n) {
        (void)compat_say("Error: Invalid GPU ID %lld. Expected 0 to %d.", (long long)gpu,
                         n - 1);
        return 1;
    }
    was = sched_state_pause(state_file, (int)gpu, n, pause, &e);
    if (was < 0)
        return not_paused(state_file, gpu, word, &e);
    if (was == 1)
        sched_log(&quiet_log, SCHED_WARNING, NULL, "GPU %lld is %s", (long long)gpu,
                  pause ? "paused already" : "not paused");
    return compat_say(
        "GPU %lld %s request written to state file '%s'.\nThe running scheduler should "
        "detect this change shortly.",
        (long long)gpu, word, state_file);
}

/* --- screens --- */

static int
screens(const char *state_file)
{
    auto_client struct client *c = sched_connect(state_file);
    auto_buf struct buf out = BUF_INIT;

    buf_adds(&out, "Listing active scheduler GNU Screen sessions...\n");
    sched_add_screens(&out, c, "\n--- Active GPU Job Screen Sessions ---\n",
                      "No matching screen sessions found.\n");
    return cli_put(&out);
}

int
compat_scheduler(int argc, char **argv)
{
    const struct pyarg_parser parser = {.prog = compat_name(argv[0]),
                                        .about = "GPU Job Scheduler, served by Berth",
                                        .args = globals,
                                        .commands = commands,
                                        .dest = "command"};
    struct call c = {.state_file = STATE_FILE};
    int status, at = pyarg_read(&parser, argc, argv, &c, &status);

    if (at == PYARG_EXIT)
        return status;
    if (!c.state_file[0])
        return pyarg_error(&parser, "argument --state-file: it needs a name");
    switch (at) {
    case CMD_START:
        return check_start(&parser, &c) ? start(&c) : 2;
    case CMD_ADD:
        return add(&c);
    case CMD_STATUS:
        return status_of(c.state_file);
    case CMD_SCREENS:
        return screens(c.state_file);
    default:
        return pause_gpu(c.state_file, c.gpu, at == CMD_PAUSE);
    }
}
