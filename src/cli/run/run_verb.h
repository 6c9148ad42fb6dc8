/* Shared by the files of `berth run`. run_verb.c parses the options and starts; run_file.c
 * reads, parses and syncs a file; run_watch.c detects its changes; run_follow.c is the main
 * loop; run_events.c turns the daemon's events into lines; run_jobs.c tracks the jobs;
 * run_summary.c prints the summary. The daemon holds the authoritative state: all of this can
 * be rebuilt from one sync and the events since then, as a reconnection does. */
#ifndef CLI_RUN_RUN_VERB_H
#define CLI_RUN_RUN_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "cli/ask/connect.h"
#include "cli/common/progress.h"
#include "cli/common/term.h"
#include "spec/jobsfile.h"
#include "wire/client.h"

struct cli;
struct client;
struct err;
struct watch;

struct run_options {
    struct daemon_args daemon;
    const char *on;      /* where all lines run; NULL: as each line says */
    bool pack;           /* pack the jobs on Slurm */
    const char *models;  /* model table of --models; NULL: none */
    int64_t oom_retries; /* -1: not given */
    bool watch;
    bool fresh;
    bool dry_run;
    bool detach;
    bool verbose;
    bool quiet;
};

/* A job of a present or former line of the files. */
struct run_job {
    int64_t id;
    char *command;     /* owned */
    const char *state; /* name of a state, static */
    int64_t status;    /* exit status; -1: not ended */
    int64_t signal;
    int64_t synced_status; /* exit status in the last sync's answer; -1: none */
    const char *synced;    /* state in the last sync's answer */
    int64_t run_ms;
    int64_t util;  /* -1: unknown */
    uint64_t gpus; /* of its last attempt, as a mask */
    bool in_file;
    bool cancel;  /* its line has the word `cancel` */
    bool before;  /* it ended before this run */
    bool started; /* it started during this run, or was running at the beginning */
};

struct run_jobs {
    struct run_job *all;
    size_t n, cap;
    uint32_t *slots; /* hash table of ids: index + 1 */
    size_t n_slots;
    size_t passed; /* number of jobs that had ended at the last check */
};

struct run_job *run_jobs_find(struct run_jobs *t, int64_t id); /* NULL: unknown id */
/* Finds or adds a job; invalidates earlier pointers. */
struct run_job *run_jobs_get(struct run_jobs *t, int64_t id);
void run_jobs_set_state(struct run_job *job, const char *state);
void run_jobs_free(struct run_jobs *t);

struct run_counts {
    size_t total; /* jobs that count: those in the file, or started by it */
    size_t done, running, waiting, held;
    size_t completed, failed, timeout, cancelled, oom, infeasible, lost;
    size_t before;
    int64_t highest; /* highest exit status of a job */
};
/* Counts all jobs. */
void run_jobs_count(const struct run_jobs *t, struct run_counts *out);
/* True if all jobs that count have ended; usually checks only those that have ended since the
 * last call. */
bool run_jobs_have_ended(struct run_jobs *t);

struct run_file {
    const char *shown; /* as given; borrowed */
    char *words;       /* the same, safe for a terminal */
    char *path;        /* absolute, or the name of this standard input */
    bool is_stdin;
    const char *on;              /* borrowed; where all lines run; NULL: as each line says */
    bool pack;                   /* pack the jobs on Slurm */
    const struct models *models; /* borrowed; NULL: none */
    struct jobsfile parsed;
    struct buf text;   /* the last valid content */
    struct buf warned; /* the last warning, to print each once */
    struct stat_mark {
        dev_t dev;
        ino_t ino;
        off_t size;
        struct timespec mtime;
    } mark;          /* to detect changes without notifications */
    bool read_empty; /* the last read found an empty file, perhaps a save in progress */
    int64_t due_us;  /* boot time of the next reading; 0: none */
    int64_t id;      /* the daemon's id */
    char token[CLIENT_TOKEN_SIZE]; /* of a sync without an answer; "": none */
};

struct run {
    struct cli *cli;
    struct run_options opt;
    struct models *models; /* from --models; may be NULL */
    struct term term;
    struct client *client;
    struct run_file *files;
    int n_files;
    char *cwd;   /* folder of the jobs: where this program was started */
    char **argv; /* to print how to return */
    int argc;
    struct run_jobs jobs;
    json_t *queue; /* received events that are not handled yet */
    int64_t last_seq;
    bool first_sync;
    bool hears_launches; /* subscribed to events that only jobs on Slurm cause */
    struct buf out;      /* lines to be written */
    struct progress progress;
    struct watch *watch;
    int id_width;
    char stopped_by[64]; /* the user who stopped the daemon; "": unknown */
    int waiting_said;
    int64_t under, over; /* jobs that declared too little VRAM, or too much */
};

/* run_file.c */
/* Reads and parses. 0; -1 with *e, after printing all parse errors to standard error if
 * say. */
int run_file_load(struct run_file *f, bool say, struct err *e);
/* Reads again. 1: the content is new and valid; 0: nothing to do (a warning may be
 * printed). */
int run_file_reload(struct run *run, struct run_file *f);
bool run_file_has_changed(struct run_file *f); /* by stat */
/* Makes the daemon's queue match the file. */
int run_file_sync(struct run *run, struct run_file *f, bool fresh, struct err *e);
/* Sends file.sync or file.plan, returning as client_call; an error about a line gets its
 * position. */
int run_file_call(const struct run *run, const struct run_file *f, const char *method,
                  bool fresh, json_t **result, struct err *e);
void run_file_free(struct run_file *f);

/* run_watch.c */
struct watch *watch_new(void); /* works without inotify too, then without notifications */
void watch_free(struct watch *w);
int watch_fd(const struct watch *w);                           /* -1: none */
void watch_file(struct watch *w, int index, const char *path); /* again after each change */
/* Reads notifications and sets due_us of the affected files. */
void watch_read(struct watch *w, struct run_file *files, int64_t now_us);

/* run_verb.c */
bool run_line_is_on_slurm(const struct jobsfile_line *line);
/* Number of lines for which is returns true; NULL: of all lines. */
size_t run_count_lines(const struct run *run, bool (*is)(const struct jobsfile_line *));

/* run_events.c */
void run_on_notify(void *ctx, const char *method, json_t *params);
/* Follows events from last_seq on, replacing an earlier subscription; handles past events at
 * once. */
int run_subscribe(struct run *run, struct err *e);
/* Subscribes again if a new line needs more kinds of events. */
int run_subscribe_more(struct run *run, struct err *e);
void run_drain_events(struct run *run);
/* Fetches details of jobs whose end was in the sync's answer but in no event. */
int run_reconcile(struct run *run, struct err *e);
/* Prints "running" lines for jobs that were running at the beginning. */
int run_show_running(struct run *run, struct err *e);
void run_flush(struct run *run);

/* run_follow.c */
/* Runs until the end, or until the user detaches. lost: why the connection is lost already, if
 * it is. Returns the exit status. */
int run_follow(struct run *run, struct err *lost);
void run_add_way_back(const struct run *run, struct buf *out);

/* run_plan.c */
int run_plan(struct run *run);

/* run_summary.c */
int run_summary(struct run *run);
void run_say_before(const struct run *run);

#endif
