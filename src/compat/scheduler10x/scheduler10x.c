/* `scheduler_10x.py` as its documentation describes it, which its source never implemented. It
 * uses the jobs file, state file and queue of `scheduler` (scheduler.h), with a config file,
 * priority bands, and commands that act on the running scheduler. This file reads the command
 * line; scheduler10x.h lists the other files. */
#include "compat/scheduler10x/scheduler10x.h"

#include <string.h>

#include "base/err.h"
#include "compat/compat.h"
#include "compat/py/pyarg.h"

/* Values of the command line. */
struct call {
    const char *config;
    struct x10_start start;
    struct x10_job job;
    const char *id, *status;
    int64_t gpu;
    bool detailed, as_json, watch, quick;
};
#define INTO(member) PYARG_INTO(struct call, member)

#define CONFIG_ROW                                                                             \
    {                                                                                          \
        "--config", PYARG_STR, INTO(config), .help = "Configuration file"                      \
    }

static const struct pyarg globals[] = {
    PYARG_HELP_ROW,
    {"--version", PYARG_VERSION, .help = "show program's version number and exit",
     .metavar = "Ultra GPU Scheduler v" X10_VERSION},
    {"--config", PYARG_STR, INTO(config), .hidden = true},
    {0},
};

static const struct pyarg start_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"--gpus", PYARG_INT, INTO(start.gpus), .help = "Number of GPUs to manage"},
    {"--workers", PYARG_INT, INTO(start.workers), .help = "Jobs that run at once"},
    {"--jobs-file", PYARG_STR, INTO(start.jobs_file),
     .help = "Jobs file to follow; \"\": none"},
    {"--screen", PYARG_FLAG, INTO(start.screen),
     .help = "Run each job in a GNU screen session"},
    {"--log-level", PYARG_STR, INTO(start.level), .help = "How much the log says",
     .choices = "DEBUG,INFO,WARNING,ERROR"},
    {"--daemon", PYARG_FLAG, INTO(start.background), .help = "Go into the background"},
    {0},
};

static const struct pyarg status_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"--detailed", PYARG_FLAG, INTO(detailed), .help = "Show active jobs"},
    {"--json", PYARG_FLAG, INTO(as_json), .help = "As JSON"},
    {"--watch", PYARG_FLAG, INTO(watch), .help = "Again and again, until q or Ctrl+C"},
    {0},
};

static const struct pyarg add_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"script", PYARG_STR, INTO(job.script), .help = "Path to the Python script"},
    {"--conda", PYARG_STR, INTO(job.conda), .help = "Conda environment"},
    {"--args", PYARG_ANY, INTO(job.args), .help = "Arguments of the script, as one string"},
    {"--priority", PYARG_INT, INTO(job.priority), .help = "Lower runs first (0)"},
    {"--gpus", PYARG_STR, INTO(job.gpus), .help = "Allowed GPUs: 0,1 or 0-3"},
    {"--output", PYARG_STR, INTO(job.output), .help = "Where to (queue)",
     .choices = "queue,file", .standard = "queue"},
    {0},
};

static const struct pyarg gpu_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"gpu_id", PYARG_INT, INTO(gpu), .help = "The GPU"},
    {0},
};
static const struct pyarg job_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"job_id", PYARG_STR, INTO(id), .help = "The job"},
    {0},
};
static const struct pyarg list_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"--status", PYARG_STR, INTO(status), .help = "Only these (all)",
     .choices = "all,running,queued,completed,failed,cancelled,timeout", .standard = "all"},
    {0},
};
static const struct pyarg test_args[] = {
    PYARG_HELP_ROW,
    CONFIG_ROW,
    {"--quick", PYARG_FLAG, INTO(quick), .help = "Some seconds only"},
    {0},
};
static const struct pyarg plain_args[] = {PYARG_HELP_ROW, CONFIG_ROW, {0}};

enum {
    CMD_START,
    CMD_STATUS,
    CMD_ADD,
    CMD_PAUSE,
    CMD_RESUME,
    CMD_CANCEL,
    CMD_LIST,
    CMD_SAMPLE,
    CMD_HEALTH,
    CMD_METRICS,
    CMD_SCREENS,
    CMD_TEST
};
static const struct pyarg_command commands[] = {
    [CMD_START] = {"start", "Start the scheduler", start_args},
    [CMD_STATUS] = {"status", "Show the scheduler's status", status_args},
    [CMD_ADD] = {"add", "Add a job", add_args},
    [CMD_PAUSE] = {"pause-gpu", "Start nothing more on a GPU", gpu_args},
    [CMD_RESUME] = {"resume-gpu", "Use a paused GPU again", gpu_args},
    [CMD_CANCEL] = {"cancel-job", "Cancel a job", job_args},
    [CMD_LIST] = {"list-jobs", "List jobs", list_args},
    [CMD_SAMPLE] = {"config-sample", "Print a sample configuration", plain_args},
    [CMD_HEALTH] = {"health", "Check the health of scheduler and machine", plain_args},
    [CMD_METRICS] = {"metrics", "Show performance metrics", plain_args},
    [CMD_SCREENS] = {"screens", "List screen sessions of jobs", plain_args},
    [CMD_TEST] = {"test", "Test what is installed", test_args},
    {0}};

/* --- the commands --- */

static int
sample(void)
{
    auto_buf struct buf out = BUF_INIT;

    x10_config_sample(&out);
    return compat_say("%.*s", (int)out.len - 1, out.data);
}

static int
ask(int command, const struct x10 *x, const struct call *c)
{
    switch (command) {
    case CMD_STATUS:
        return x10_status(x, c->detailed, c->as_json, c->watch);
    case CMD_ADD:
        return x10_add(x, &c->job);
    case CMD_PAUSE:
    case CMD_RESUME:
        return x10_pause(x, c->gpu, command == CMD_PAUSE);
    case CMD_CANCEL:
        return x10_cancel(x, c->id);
    case CMD_LIST:
        return x10_list(x, c->status);
    case CMD_HEALTH:
        return x10_health(x);
    case CMD_METRICS:
        return x10_metrics(x);
    default:
        return x10_screens(x);
    }
}

static int
ask_running(int command, const struct call *call)
{
    struct x10_config c;
    struct err e = {0};
    struct x10 x;
    int status;

    x10_config_init(&c);
    if (call->config && x10_config_read(&c, call->config, &e) < 0) {
        status = x10_fail("Error: %s", e.text);
    } else {
        x10_find(&x, &c, !call->config);
        status = ask(command, &x, call);
        x10_free(&x);
    }
    x10_config_free(&c);
    return status;
}

int
compat_scheduler_10x(int argc, char **argv)
{
    const struct pyarg_parser parser = {.prog = compat_name(argv[0]),
                                        .about = "Ultra GPU Job Scheduler, served by Berth",
                                        .args = globals,
                                        .commands = commands,
                                        .dest = "command"};
    struct call c = {0};
    int status, at = pyarg_read(&parser, argc, argv, &c, &status);

    if (at == PYARG_EXIT)
        return status;
    if (at == CMD_START)
        return x10_start(c.config, &c.start);
    if (at == CMD_SAMPLE)
        return sample();
    if (at == CMD_TEST)
        return x10_test(c.quick);
    return ask_running(at, &c);
}
