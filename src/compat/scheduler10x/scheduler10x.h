/* Shared by the files of the drop-in `scheduler_10x`, beyond scheduler.h: scheduler10x.c reads
 * the command line; x10_start.c has `start`, x10_config.c the config file; x10_ask.c and
 * x10_add.c the commands that act on a running scheduler; x10_status.c and x10_show.c print
 * its state; x10_memory.c (x10_memory.h) enforces the memory limit within a job; x10_test.c
 * has `test`. */
#ifndef COMPAT_SCHEDULER10X_SCHEDULER10X_H
#define COMPAT_SCHEDULER10X_SCHEDULER10X_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "compat/py/pyarg.h"
#include "compat/scheduler/scheduler.h"

struct err;
struct client;

#define X10_VERSION "3.0.0"

/* --- x10_config.c --- */

struct x10_config {
    struct sched_config
        sched;            /* what is the same there; the rest is x10_start.c's to fill in */
    struct sched_log log; /* likewise */
    int64_t num_gpus, max_workers;
    double worker_timeout_s, job_timeout_s, stop_s, window_s;
    int64_t max_attempts;
    double retry_wait_s;
    int64_t max_concurrent;
    const char *level;
    bool metrics;
    double max_log_mb;
    int64_t backups;
    char **allowed; /* owned; NULL-terminated */
    double max_memory_gb;
    bool limits;
    bool workers_said, gpus_said;
    json_t *texts; /* owned; holds the strings of text members */
};

void x10_config_init(struct x10_config *c);
/* Read a config file over the defaults; errors name the key. */
int x10_config_read(struct x10_config *c, const char *path, struct err *e);
/* Check values that depend on each other, after all were set. */
int x10_config_check(struct x10_config *c, struct err *e);
/* Set a value from an option; key such as "scheduler.num_gpus". */
int x10_config_set_int(struct x10_config *c, const char *key, int64_t value, struct err *e);
void x10_config_sample(struct buf *out);
/* The absolute path, without resolving anything. The caller frees. */
char *x10_whole_path(const char *path);
void x10_config_free(struct x10_config *c);

/* --- x10_start.c --- */

/* Values of the command line; NULL: not given. */
struct x10_start {
    const char *jobs_file, *level;
    struct pyarg_value gpus, workers;
    bool screen, background;
};
int x10_start(const char *config, const struct x10_start *options);

/* --- x10_ask.c --- */

/* A running scheduler, as seen by a command. */
struct x10 {
    char *state_file;      /* owned */
    char *jobs_file;       /* owned; used if none is running */
    json_t *about;         /* owned; the note in its lock; NULL: none is running */
    struct client *client; /* owned; NULL: none is running, or its daemon is unreachable */
    char *tag;             /* owned; tag of its jobs; NULL: unknown */
};

/* Find the scheduler of the config's state file; with anywhere, otherwise the one that the
 * user started last. */
void x10_find(struct x10 *x, const struct x10_config *c, bool anywhere);
void x10_free(struct x10 *x);
/* Note the user's running scheduler, for commands run in other folders. */
void x10_register(const char *state_file);
void x10_unregister(const char *state_file);

/* Print "❌ message" to standard output; returns 1. */
int x10_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Report that no scheduler can be asked, after this text; returns 1. */
int x10_nobody(const struct x10 *x, const char *what);

int x10_pause(const struct x10 *x, int64_t gpu, bool pause);
int x10_cancel(const struct x10 *x, const char *id);
int x10_screens(const struct x10 *x);

struct x10_job {
    const char *script, *conda, *args, *gpus;
    int64_t priority;
    const char *output; /* "queue", "file" */
};
int x10_add(const struct x10 *x, const struct x10_job *job); /* x10_add.c */

/* The scheduler's jobs as an array of objects: pending and running ones; or ended ones since a
 * time, only the newest `most` (0: all), oldest first, with these fields (a list, stolen).
 * NULL with e. */
json_t *x10_live_jobs(const struct x10 *x, struct err *e);
json_t *x10_ended_jobs(const struct x10 *x, int64_t since_us, int64_t most, json_t *fields,
                       struct err *e);
/* The script of a job, from its command. The caller frees. */
char *x10_script_of(const json_t *job);

/* --- x10_status.c --- */

int x10_status(const struct x10 *x, bool detailed, bool as_json, bool watch);

/* --- x10_show.c --- */

int x10_list(const struct x10 *x, const char *status);
int x10_health(const struct x10 *x);
int x10_metrics(const struct x10 *x);
/* HEALTHY, DEGRADED, UNHEALTHY or CRITICAL, from the daemon's checks. */
const char *x10_health_word(const json_t *health);
const char *x10_icon_of(const char *health_word);
/* On the scale of users: lower runs first. */
int64_t x10_priority_of(const json_t *job);
void x10_add_gpus(struct buf *out, const json_t *job); /* "[0, 1]" */
/* {"timestamp","job_metrics","gpu_metrics","system_metrics"} */
json_t *x10_metrics_object(const struct x10 *x, struct err *e);

/* --- x10_test.c --- */

int x10_test(bool quick);

#endif
