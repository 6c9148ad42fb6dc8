/* `scheduler_10x start`: turns config and options into settings for sched_run.c, prints the
 * first and last messages, and moves to the background. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "compat/compat.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"

#define RETRIES       3
#define STOP_SPARE_MS 2000 /* part of the shutdown time reserved for killed jobs */
#define MIB           1048576
/* Larger limits mean no limit. */
#define MEMORY_NONE_GB 1e6

/* --- settings --- */

static int
take_options(struct x10_config *c, const struct x10_start *o, struct err *e)
{
    if ((o->gpus.text && x10_config_set_int(c, "scheduler.num_gpus", o->gpus.i, e) < 0) ||
        (o->workers.text &&
         x10_config_set_int(c, "scheduler.max_workers", o->workers.i, e) < 0))
        return -1;
    if (o->jobs_file)
        c->sched.jobs_file = o->jobs_file;
    if (o->level)
        c->level = o->level;
    return 0;
}

/* max_workers may be twice the number of GPUs, which may exceed the default of 8. */
static void
count_gpus(struct x10_config *c)
{
    int n = c->gpus_said ? 0 : sched_count_cards();

    if (n > c->num_gpus)
        c->num_gpus = n;
}

/* Without a config file, scripts in the current folder are allowed too. */
static void
allow_this_folder(struct x10_config *c)
{
    char *here = getcwd(NULL, 0);

    if (!here)
        return;
    c->allowed = xrealloc(c->allowed, 3 * sizeof *c->allowed);
    c->allowed[1] = here;
    c->allowed[2] = NULL;
}

/* Relative paths refer to this folder; commands and jobs may run elsewhere. */
static void
make_absolute(char **paths)
{
    for (char **path = paths; *path; path++) {
        auto_free char *said = *path;

        *path = x10_whole_path(said);
    }
}

static int
read_config(struct x10_config *c, const char *path, const struct x10_start *o, struct err *e)
{
    x10_config_init(c);
    if (path && x10_config_read(c, path, e) < 0)
        return -1;
    if (!path)
        allow_this_folder(c);
    make_absolute(c->allowed);
    if (take_options(c, o, e) < 0)
        return -1;
    count_gpus(c);
    return x10_config_check(c, e);
}

static enum sched_level
level_of(const char *name)
{
    return strcmp(name, "TRACE") == 0 || strcmp(name, "DEBUG") == 0 ? SCHED_DEBUG
           : strcmp(name, "INFO") == 0                              ? SCHED_INFO
           : strcmp(name, "WARNING") == 0                           ? SCHED_WARNING
                                                                    : SCHED_ERROR;
}

static void
fill_config(struct sched *s, const struct x10_config *c, bool screen)
{
    int64_t stop_ms = (int64_t)(c->stop_s < 1e6 ? c->stop_s * 1000 : 1e9);

    s->log = c->log;
    s->log.path = c->log.path[0] ? c->log.path : NULL;
    s->log.logger = "gpu_scheduler";
    s->log.level = level_of(c->level);
    s->log.max_bytes = c->max_log_mb < 1e9 ? (int64_t)(c->max_log_mb * MIB) : 0;
    s->log.keep = (int)(c->backups < 1000 ? c->backups : 1000);
    s->config = c->sched;
    s->config.is_10x = true;
    s->config.n_gpus = c->gpus_said ? (int)c->num_gpus : 0;
    s->config.screen = screen;
    s->config.retries = RETRIES;
    s->config.allowed_paths = c->allowed;
    s->config.limit_ms = (int64_t)(c->job_timeout_s < 1e9 ? c->job_timeout_s * 1000 : 0);
    if (c->limits && c->max_memory_gb < MEMORY_NONE_GB)
        s->config.mem_mib = (int64_t)(c->max_memory_gb * 1024);
    s->config.stop_ms = stop_ms - STOP_SPARE_MS;
    s->config.running_max =
        c->max_workers < c->max_concurrent ? c->max_workers : c->max_concurrent;
}

/* --- start --- */

static int ready_fd = -1; /* pipe to the parent, which waits until we run */

/* Detach from the terminal once the scheduler runs. */
static void
leave_terminal(struct sched *s)
{
    auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)compat_say("Running in the background, PID %d", (int)getpid());
    s->log.quiet = true;
    for (int fd = 0; null_fd >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null_fd, fd);
    (void)!write(ready_fd, "", 1);
    close(ready_fd);
    ready_fd = -1;
}

static int
on_ready(struct sched *s)
{
    (void)compat_say("🚀 Ultra GPU Scheduler v" X10_VERSION " started successfully");
    (void)compat_say("📊 Managing %d GPUs with %lld workers", __builtin_popcountll(s->managed),
                     (long long)s->config.running_max);
    (void)compat_say("📁 Monitoring jobs file: %s",
                     s->config.jobs_file[0] ? s->config.jobs_file : "Disabled");
    (void)compat_say("🖥️  Screen mode: %s", s->config.screen ? "Enabled" : "Disabled");
    if (ready_fd < 0)
        (void)compat_say("Press Ctrl+C to stop");
    x10_register(s->config.state_file);
    if (ready_fd >= 0)
        leave_terminal(s);
    sched_log(&s->log, SCHED_INFO, NULL, "Scheduler started");
    return 0;
}

static void
on_leave(struct sched *s)
{
    (void)s;
    (void)compat_say("🛑 Stopping scheduler...");
}

/* 0: continue in this process; 1: the child continues, exit with *status. */
static int
go_into_background(int *status)
{
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    switch (fork()) {
    case -1:
        close(ends[0]);
        close(ends[1]);
        return 0;
    case 0:
        close(ends[0]);
        ready_fd = ends[1];
        (void)setsid();
        return 0;
    default:
        close(ends[1]);
        *status = read(ends[0], &byte, 1) == 1 ? 0 : 1;
        close(ends[0]);
        return 1;
    }
}

/* Report an unwritable log now, before detaching. */
static int
check_log(const char *path, struct err *e)
{
    auto_close int fd =
        *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

    return fd < 0 && *path ? err_errno(e, ERR_FAILED, errno, "cannot write the log %s", path)
                           : 0;
}

static void
warn_of_paths(const struct sched *s)
{
    for (char **path = s->config.allowed_paths; *path; path++) {
        if (access(*path, F_OK) < 0)
            sched_log(&s->log, SCHED_WARNING, NULL,
                      "security.allowed_script_paths: %s is not there", *path);
    }
}

static int
run(const struct x10_config *c, bool has_file, bool screen)
{
    auto_free char *running = NULL;
    struct sched s = {.session = {.signals = -1}};
    int status;

    fill_config(&s, c, screen);
    s.on_leave = on_leave;
    if (has_file)
        warn_of_paths(&s);
    running = xasprintf("max_running=%lld", (long long)s.config.running_max);
    const char *const settings[] = {"margin_mib=0", "aging_s=0", "order=queue", running, NULL};
    status = sched_start(&s, settings, on_ready);
    if (!s.is_ready) {
        if (s.failure)
            (void)x10_fail("Error: %s", s.failure);
        (void)x10_fail("Failed to start scheduler");
    } else {
        (void)compat_say("%s", status == 0 ? "✅ Scheduler stopped gracefully"
                                           : "⚠️  Scheduler shutdown had issues");
        x10_unregister(s.config.state_file);
    }
    sched_free(&s);
    return status == 0 ? 0 : 1;
}

int
x10_start(const char *config, const struct x10_start *o)
{
    struct x10_config c;
    struct err e = {0};
    int status = 0;

    if (read_config(&c, config, o, &e) < 0 || check_log(c.log.path, &e) < 0) {
        (void)x10_fail("Error: %s", e.text);
        status = x10_fail("Failed to start scheduler");
    } else if (!o->background || !go_into_background(&status)) {
        status = run(&c, config, o->screen);
    }
    x10_config_free(&c);
    return status;
}
