/* What the files of `berth run` share. run_verb.c reads the options and begins; run_file.c
 * reads, parses and syncs a file; run_watch.c sees it change; run_follow.c is the loop;
 * run_events.c turns what the daemon says into lines; run_jobs.c keeps what is known of each
 * job; run_summary.c ends it. The daemon owns the truth: all of this can be thrown away and
 * made again from one sync and the events since, which is what a reconnection does. */
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
    const char *on;      /* where all lines run; NULL: as they say */
    bool pack;           /* those on Slurm are packed */
    const char *models;  /* table of models; NULL: none of one's own */
    int64_t oom_retries; /* -1: not said */
    bool watch;
    bool fresh;
    bool dry_run;
    bool detach;
    bool verbose;
    bool quiet;
};

/* One job that a line of the files stands for, or stood for. */
struct run_job {
    int64_t id;
    char *command;     /* owned */
    const char *state; /* a state's name, of static life */
    int64_t status;    /* exit status; -1: has not ended */
    int64_t signal;
    int64_t synced_status; /* what the last sync said of its end; -1: nothing */
    const char *synced;    /* state in the last sync's answer */
    int64_t run_ms;
    int64_t util;  /* -1: not known */
    uint64_t gpus; /* of its last attempt, a bit each */
    bool in_file;
    bool cancel;  /* its line bears the word */
    bool before;  /* it had ended before this run */
    bool started; /* seen to start, or running when we came */
};

struct run_jobs {
    struct run_job *all;
    size_t n, cap;
    uint32_t *slots; /* hash of ids: index + 1 */
    size_t n_slots;
    size_t passed; /* how many had ended at the last check */
};

struct run_job *run_jobs_find(struct run_jobs *t, int64_t id); /* NULL: unknown */
/* Finds or adds; pointers from before are stale after. */
struct run_job *run_jobs_get(struct run_jobs *t, int64_t id);
void run_jobs_set_state(struct run_job *job, const char *state);
void run_jobs_free(struct run_jobs *t);

struct run_counts {
    size_t total; /* that count: in the file, or started by it */
    size_t done, running, waiting, held;
    size_t completed, failed, timeout, cancelled, oom, infeasible, lost;
    size_t before;
    int64_t highest; /* exit status of the whole */
};
/* Looks at every job. */
void run_jobs_count(const struct run_jobs *t, struct run_counts *out);
/* Whether all that count have ended; looks at no more jobs than have ended since the last
 * time. */
bool run_jobs_have_ended(struct run_jobs *t);

struct run_file {
    const char *shown; /* as it was given; borrowed */
    char *words;       /* the same, safe for a terminal */
    char *path;        /* absolute, or the name that standard input goes by */
    bool is_stdin;
    const char *on;              /* borrowed; where all lines run; NULL: as they say */
    bool pack;                   /* those on Slurm are packed */
    const struct models *models; /* borrowed; NULL: none of one's own */
    struct jobsfile parsed;
    struct buf text;   /* the last good content */
    struct buf warned; /* the last warning: each is said once */
    struct stat_mark {
        dev_t dev;
        ino_t ino;
        off_t size;
        struct timespec mtime;
    } mark;                        /* to see changes without a notification */
    bool read_empty;               /* the last read found nothing: perhaps a save half done */
    int64_t due_us;                /* re-read at this boot time; 0: no need */
    int64_t id;                    /* the daemon's */
    char token[CLIENT_TOKEN_SIZE]; /* of a sync that has had no answer; "": there is none */
};

struct run {
    struct cli *cli;
    struct run_options opt;
    struct models *models; /* of --models; NULL */
    struct term term;
    struct client *client;
    struct run_file *files;
    int n_files;
    char *cwd;   /* where the jobs run: the folder it was started in */
    char **argv; /* to say how to come back */
    int argc;
    struct run_jobs jobs;
    json_t *queue; /* events that have come and are not dealt with */
    int64_t last_seq;
    bool first_sync;
    bool hears_launches; /* the subscription has what only jobs on Slurm say */
    struct buf out;      /* lines not yet written */
    struct progress progress;
    struct watch *watch;
    int id_width;
    char stopped_by[64]; /* the user who stopped the daemon; "": none that we know of */
    int waiting_said;
    int64_t under, over; /* declared */
};

/* run_file.c */
/* Reads and parses. 0; -1 with *e, all parse errors said on standard error when say. */
int run_file_load(struct run_file *f, bool say, struct err *e);
/* Reads again: 1 the content is new and good, 0 nothing to do (a warning may be said). */
int run_file_reload(struct run *run, struct run_file *f);
bool run_file_has_changed(struct run_file *f); /* by stat */
/* The daemon's queue becomes what the file says. */
int run_file_sync(struct run *run, struct run_file *f, bool fresh, struct err *e);
/* Asks file.sync or file.plan, as client_call does; an error of a line is placed. */
int run_file_call(const struct run *run, const struct run_file *f, const char *method,
                  bool fresh, json_t **result, struct err *e);
void run_file_free(struct run_file *f);

/* run_watch.c */
struct watch *watch_new(void); /* works without inotify too: then nothing is notified */
void watch_free(struct watch *w);
int watch_fd(const struct watch *w);                           /* -1: none */
void watch_file(struct watch *w, int index, const char *path); /* again after each change */
/* Reads what has happened and sets due_us of the files it happened to. */
void watch_read(struct watch *w, struct run_file *files, int64_t now_us);

/* run_verb.c */
bool run_line_is_on_slurm(const struct jobsfile_line *line);
/* How many lines of the files are so; NULL: all. */
size_t run_count_lines(const struct run *run, bool (*is)(const struct jobsfile_line *));

/* run_events.c */
void run_on_notify(void *ctx, const char *method, json_t *params);
/* Follows events from last_seq on, in place of what was followed before; deals with the past
 * ones at once. */
int run_subscribe(struct run *run, struct err *e);
/* Again, where a line that has come since makes it want more kinds. */
int run_subscribe_more(struct run *run, struct err *e);
void run_drain_events(struct run *run);
/* Jobs whose end was in the sync's answer and in no event: asks for the details. */
int run_reconcile(struct run *run, struct err *e);
/* "running" lines for what ran already when we came. */
int run_show_running(struct run *run, struct err *e);
void run_flush(struct run *run);

/* run_follow.c */
/* To the end, or until detached. lost: why the connection is lost already, if it is. Returns
 * the exit status. */
int run_follow(struct run *run, struct err *lost);
void run_add_way_back(const struct run *run, struct buf *out);

/* run_plan.c */
int run_plan(struct run *run);

/* run_summary.c */
int run_summary(struct run *run);
void run_say_before(const struct run *run);

#endif
