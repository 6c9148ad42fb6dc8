/* `scheduler_10x.py`: what its document promises, which its source never did. The same jobs
 * file, state file and queue as `scheduler` (scheduler.h), with a config file, bands of
 * priorities, and commands that act on the running scheduler. This file reads the command
 * line; scheduler10x.h lists the other files. */
#include "compat/scheduler10x/scheduler10x.h"

#include <string.h>

#include "base/err.h"
#include "compat/compat.h"
#include "compat/py/pyarg.h"

#define VALUES_MAX 8 /* of any command */

#define CONFIG_ROW                                                                             \
    {                                                                                          \
        "--config", PYARG_STR, .help = "Configuration file"                                    \
    }

enum { GLOBAL_HELP, GLOBAL_VERSION, GLOBAL_CONFIG, GLOBALS };
static const struct pyarg globals[] = {
    [GLOBAL_HELP] = PYARG_HELP_ROW,
    [GLOBAL_VERSION] = {"--version", PYARG_VERSION,
                        .help = "show program's version number and exit",
                        .metavar = "Ultra GPU Scheduler v" X10_VERSION},
    [GLOBAL_CONFIG] = {"--config", PYARG_STR, .hidden = true},
    [GLOBALS] = {0},
};

/* The first two rows of every command are the same. */
enum { ARG_HELP, ARG_CONFIG, ARG_OWN };
enum {
    START_GPUS = ARG_OWN,
    START_WORKERS,
    START_JOBS,
    START_SCREEN,
    START_LEVEL,
    START_DAEMON,
    STARTS
};
static const struct pyarg start_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [START_GPUS] = {"--gpus", PYARG_INT, .help = "Number of GPUs to manage"},
    [START_WORKERS] = {"--workers", PYARG_INT, .help = "Jobs that run at once"},
    [START_JOBS] = {"--jobs-file", PYARG_STR, .help = "Jobs file to follow; \"\": none"},
    [START_SCREEN] = {"--screen", PYARG_FLAG, .help = "Run each job in a GNU screen session"},
    [START_LEVEL] = {"--log-level", PYARG_STR, .help = "How much the log says",
                     .choices = "DEBUG,INFO,WARNING,ERROR"},
    [START_DAEMON] = {"--daemon", PYARG_FLAG, .help = "Go into the background"},
    [STARTS] = {0},
};

enum { STATUS_DETAILED = ARG_OWN, STATUS_JSON, STATUS_WATCH, STATUSES };
static const struct pyarg status_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [STATUS_DETAILED] = {"--detailed", PYARG_FLAG, .help = "Show active jobs"},
    [STATUS_JSON] = {"--json", PYARG_FLAG, .help = "As JSON"},
    [STATUS_WATCH] = {"--watch", PYARG_FLAG, .help = "Again and again, until q or Ctrl+C"},
    [STATUSES] = {0},
};

enum { ADD_SCRIPT = ARG_OWN, ADD_CONDA, ADD_ARGS, ADD_PRIORITY, ADD_GPUS, ADD_OUTPUT, ADDS };
static const struct pyarg add_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [ADD_SCRIPT] = {"script", PYARG_STR, .help = "Path to the Python script"},
    [ADD_CONDA] = {"--conda", PYARG_STR, .help = "Conda environment"},
    [ADD_ARGS] = {"--args", PYARG_ANY, .help = "Arguments of the script, as one string"},
    [ADD_PRIORITY] = {"--priority", PYARG_INT, .help = "Lower runs first (0)"},
    [ADD_GPUS] = {"--gpus", PYARG_STR, .help = "Allowed GPUs: 0,1 or 0-3"},
    [ADD_OUTPUT] = {"--output", PYARG_STR, .help = "Where to (queue)", .choices = "queue,file",
                    .standard = "queue"},
    [ADDS] = {0},
};

enum { GPU_ID = ARG_OWN, GPU_ARGS };
static const struct pyarg gpu_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [GPU_ID] = {"gpu_id", PYARG_INT, .help = "The GPU"},
    [GPU_ARGS] = {0},
};
static const struct pyarg job_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [ARG_OWN] = {"job_id", PYARG_STR, .help = "The job"},
    [ARG_OWN + 1] = {0},
};
static const struct pyarg list_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [ARG_OWN] = {"--status", PYARG_STR, .help = "Only these (all)",
                 .choices = "all,running,queued,completed,failed,cancelled,timeout",
                 .standard = "all"},
    [ARG_OWN + 1] = {0},
};
static const struct pyarg test_args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_CONFIG] = CONFIG_ROW,
    [ARG_OWN] = {"--quick", PYARG_FLAG, .help = "Some seconds only"},
    [ARG_OWN + 1] = {0},
};
static const struct pyarg plain_args[] = {PYARG_HELP_ROW, CONFIG_ROW, {0}};
_Static_assert((int)STARTS <= VALUES_MAX && (int)ADDS <= VALUES_MAX, "values of a command");

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
start(const char *config, const struct pyarg_value *v)
{
    const struct x10_start options = {.config = config,
                                      .gpus = v[START_GPUS].text ? &v[START_GPUS].i : NULL,
                                      .workers =
                                          v[START_WORKERS].text ? &v[START_WORKERS].i : NULL,
                                      .jobs_file = v[START_JOBS].text,
                                      .level = v[START_LEVEL].text,
                                      .screen = v[START_SCREEN].text != NULL,
                                      .background = v[START_DAEMON].text != NULL};

    return x10_start(&options);
}

static int
sample(void)
{
    auto_buf struct buf out = BUF_INIT;

    x10_config_sample(&out);
    return compat_say("%.*s", (int)out.len - 1, out.data);
}

static int
ask(int command, const struct x10 *x, const struct pyarg_value *v)
{
    const struct x10_job job = {.script = v[ADD_SCRIPT].text,
                                .conda = v[ADD_CONDA].text,
                                .args = v[ADD_ARGS].text,
                                .gpus = v[ADD_GPUS].text,
                                .priority = v[ADD_PRIORITY].i,
                                .to_file = v[ADD_OUTPUT].text &&
                                           strcmp(v[ADD_OUTPUT].text, "file") == 0};

    switch (command) {
    case CMD_STATUS:
        return x10_status(x, v[STATUS_DETAILED].text != NULL, v[STATUS_JSON].text != NULL,
                          v[STATUS_WATCH].text != NULL);
    case CMD_ADD:
        return x10_add(x, &job);
    case CMD_PAUSE:
    case CMD_RESUME:
        return x10_pause(x, v[GPU_ID].i, command == CMD_PAUSE);
    case CMD_CANCEL:
        return x10_cancel(x, v[ARG_OWN].text);
    case CMD_LIST:
        return x10_list(x, v[ARG_OWN].text);
    case CMD_HEALTH:
        return x10_health(x);
    case CMD_METRICS:
        return x10_metrics(x);
    default:
        return x10_screens(x);
    }
}

static int
ask_running(int command, const char *config, const struct pyarg_value *v)
{
    struct x10_config c;
    struct err e = {0};
    struct x10 x;
    int status;

    x10_config_init(&c);
    if (config && x10_config_read(&c, config, &e) < 0) {
        status = x10_fail("Error: %s", e.text);
    } else {
        x10_find(&x, &c, !config);
        status = ask(command, &x, v);
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
    struct pyarg_value g[GLOBALS], v[VALUES_MAX] = {0};
    const char *config;
    int status, at = pyarg_read(&parser, argc, argv, g, v, &status);

    if (at == PYARG_EXIT)
        return status;
    config = v[ARG_CONFIG].text ? v[ARG_CONFIG].text : g[GLOBAL_CONFIG].text;
    if (at == CMD_START)
        return start(config, v);
    if (at == CMD_SAMPLE)
        return sample();
    if (at == CMD_TEST)
        return x10_test(v[ARG_OWN].text != NULL);
    return ask_running(at, config, v);
}
