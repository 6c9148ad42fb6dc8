/* `scheduler.py`: python scripts from a file of lines, fractions of GPUs by what models need,
 * a state file that any program may write. This file reads the command line and answers what
 * needs no scheduler; scheduler.h lists the other files. */
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
        "--state-file", PYARG_STR, .hidden = true                                              \
    }

enum { GLOBAL_HELP, GLOBAL_STATE, GLOBALS };
static const struct pyarg globals[] = {
    [GLOBAL_HELP] = PYARG_HELP_ROW,
    [GLOBAL_STATE] = {"--state-file", PYARG_STR, .help = "Path to the state file"},
    [GLOBALS] = {0},
};

enum {
    START_HELP,
    START_STATE,
    START_GPUS,
    START_JOBS,
    START_LLM,
    START_SCREEN,
    START_MEM,
    START_LOAD,
    START_MONITOR,
    START_LOOK,
    START_TRIES,
    START_WAIT,
    START_RETRIES,
    START_CUDA,
    STARTS
};
static const struct pyarg start_args[] = {
    [START_HELP] = PYARG_HELP_ROW,
    [START_STATE] = STATE_ROW,
    [START_GPUS] = {"--gpus", PYARG_INT, .help = "Number of GPUs to manage (all)"},
    [START_JOBS] = {"--jobs-file", PYARG_STR,
                    .help = "Jobs file to follow; \"\": none (jobs.txt)",
                    .standard = "jobs.txt"},
    [START_LLM] = {"--llm-config", PYARG_STR, .help = "What models need (llm_config.json)",
                   .standard = "llm_config.json"},
    [START_SCREEN] = {"--screen", PYARG_FLAG, .help = "Run each job in a GNU screen session"},
    [START_MEM] = {"--mem-threshold", PYARG_FLOAT, .help = "GPU memory threshold (0.8)",
                   .standard = "0.8"},
    [START_LOAD] = {"--load-threshold", PYARG_FLOAT, .help = "GPU load threshold (0.8)",
                    .standard = "0.8"},
    [START_MONITOR] = {"--monitor-interval", PYARG_INT,
                       .help =
                           "Seconds between looks for scripts that were missing; a change of "
                           "the jobs file acts at once (30)",
                       .standard = "30"},
    [START_LOOK] = {"--state-interval", PYARG_INT,
                    .help =
                        "Seconds between looks at the GPUs; a change of the state file acts at "
                        "once (20)",
                    .standard = "20"},
    [START_TRIES] = {"--max-assign-attempts", PYARG_INT,
                     .help = "Accepted; a job starts when it fits, without tries"},
    [START_WAIT] = {"--assign-retry-wait", PYARG_INT, .help = "Accepted, as the above"},
    [START_RETRIES] = {"--retries", PYARG_INT, .help = "Runs more of a job that fails (3)",
                       .standard = "3"},
    [START_CUDA] = {"--cuda-ids", PYARG_STR,
                    .help = "What --cuda is given: ids of the machine, or as the job sees them "
                            "(physical)",
                    .choices = "physical,local", .standard = "physical"},
    [STARTS] = {0},
};

enum {
    ADD_HELP,
    ADD_STATE,
    ADD_SCRIPT,
    ADD_CONDA,
    ADD_ARGS,
    ADD_PRIORITY,
    ADD_GPUS,
    ADD_OUTPUT,
    ADDS
};
static const struct pyarg add_args[] = {
    [ADD_HELP] = PYARG_HELP_ROW,
    [ADD_STATE] = STATE_ROW,
    [ADD_SCRIPT] = {"script", PYARG_STR, .help = "Path to the Python script"},
    [ADD_CONDA] = {"--conda", PYARG_STR, .help = "Conda environment"},
    [ADD_ARGS] = {"--args", PYARG_STR, .help = "Arguments of the script, as one string"},
    [ADD_PRIORITY] = {"--priority", PYARG_INT, .help = "Lower runs first (0)"},
    [ADD_GPUS] = {"--gpus", PYARG_STR, .help = "Allowed GPUs: 0,1 or 0-3"},
    [ADD_OUTPUT] = {"--output-file", PYARG_STR,
                    .help = "File to append to, - to print (jobs.txt)", .standard = "jobs.txt"},
    [ADDS] = {0},
};

enum { GPU_HELP, GPU_STATE, GPU_ID, GPU_ARGS };
static const struct pyarg gpu_args[] = {
    [GPU_HELP] = PYARG_HELP_ROW,
    [GPU_STATE] = STATE_ROW,
    [GPU_ID] = {"gpu_id", PYARG_INT, .help = "The GPU"},
    [GPU_ARGS] = {0},
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

/* False with the complaint said. */
static bool
check_start(const struct pyarg_parser *p, const struct pyarg_value *v)
{
    const struct pyarg_value *gpus = &v[START_GPUS], *retries = &v[START_RETRIES];

    if (gpus->text && gpus->i < 1)
        (void)pyarg_error(p, "argument --gpus: at least one GPU is needed, not %s", gpus->text);
    else if (retries->i < 0 || retries->i > RETRIES_MAX)
        (void)pyarg_error(p, "argument --retries: from 0 to %d, not %s", RETRIES_MAX,
                          retries->text);
    else
        return true;
    return false;
}

static int
start(const char *state_file, const struct pyarg_value *v)
{
    static const char *const settings[] = {"margin_mib=0", "aging_s=0", "order=queue", NULL};
    struct sched s = {.session = {.signals = -1}, .log = quiet_log};
    int status;

    s.config = (struct sched_config){
        .state_file = state_file,
        .jobs_file = v[START_JOBS].text,
        .llm_file = v[START_LLM].text,
        .n_gpus = v[START_GPUS].i < GPU_MAX ? (int)v[START_GPUS].i : GPU_MAX,
        .mem_threshold = v[START_MEM].f,
        .load_threshold = v[START_LOAD].f,
        .precision = 0.01,
        .monitor_s = (double)v[START_MONITOR].i,
        .state_s = (double)v[START_LOOK].i,
        .screen = v[START_SCREEN].text != NULL,
        .cuda = true,
        .local_cuda = strcmp(v[START_CUDA].text, "local") == 0,
        .retries = (int)v[START_RETRIES].i,
        .stop_ms = GRACE_DEFAULT_MS,
    };
    status = sched_start(&s, settings, on_ready);
    sched_free(&s);
    return status;
}

/* --- add --- */

static int
add(const struct pyarg_value *v)
{
    const char *path = v[ADD_OUTPUT].text;
    const char *const fields[] = {v[ADD_CONDA].text, v[ADD_ARGS].text, v[ADD_GPUS].text};
    auto_buf struct buf line = BUF_INIT;
    struct err e = {0};
    int rc = sched_line_add(&line, v[ADD_PRIORITY].i, v[ADD_SCRIPT].text, fields, &e);

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

/* The scheduler's daemon, else the one that a start would find here. None is started. */
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

/* Every column is padded, the last too, as it always was. */
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
    struct pyarg_value g[GLOBALS], v[STARTS];
    const char *state_file;
    int status, at = pyarg_read(&parser, argc, argv, g, v, &status);

    if (at == PYARG_EXIT)
        return status;
    state_file = v[START_STATE].text    ? v[START_STATE].text
                 : g[GLOBAL_STATE].text ? g[GLOBAL_STATE].text
                                        : STATE_FILE;
    if (!state_file[0])
        return pyarg_error(&parser, "argument --state-file: it needs a name");
    switch (at) {
    case CMD_START:
        return check_start(&parser, v) ? start(state_file, v) : 2;
    case CMD_ADD:
        return add(v);
    case CMD_STATUS:
        return status_of(state_file);
    case CMD_SCREENS:
        return screens(state_file);
    default:
        return pause_gpu(state_file, v[GPU_ID].i, at == CMD_PAUSE);
    }
}
