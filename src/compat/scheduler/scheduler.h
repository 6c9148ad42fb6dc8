/* Shared by the drop-ins `scheduler` and `scheduler_10x`, which use the same jobs file, state
 * file and rules with different settings. scheduler.c and scheduler10x.c read the command
 * lines; sched_line.c parses a line of the jobs file, sched_file.c the whole file;
 * sched_state.c reads and writes the state file, by which users pause GPUs; sched_log.c writes
 * the log; sched_request.c builds a job's request; sched_queue.c sends pending jobs to the
 * daemon, sched_events.c takes its events; sched_cards.c keeps GPUs and state file in step;
 * sched_run.c is `start`; sched_ask.c serves the commands beside it; sched_job.c runs inside a
 * job and writes its log. The daemon has the state of all jobs, so everything here can be
 * rebuilt from it. */
#ifndef COMPAT_SCHEDULER_SCHEDULER_H
#define COMPAT_SCHEDULER_SCHEDULER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/request.h"
#include "cli/run/run_verb.h"
#include "compat/engine/compat_session.h"
#include "compat/engine/sent_lines.h"

struct err;

/* Exit statuses of the wrapper around a script: it exceeded its memory limit, or its script is
 * outside the allowed paths. */
#define SCHED_OVER_MEMORY 137
#define SCHED_NOT_ALLOWED 126

/* Reason for cancelling jobs that a later start may run again. */
#define SCHED_STOP_WHY "its scheduler stopped"

#define SCHED_KEY_SIZE  41
#define SCHED_MODE_SIZE 24

/* --- sched_line.c --- */

/* The request of a line of the jobs file, or of `add`. */
struct sched_spec {
    char key[SCHED_KEY_SIZE]; /* hash of script, environment, ordered arguments, GPUs */
    char *text;               /* the line; owned, like the members below */
    int64_t priority;         /* lower runs first */
    char *script;
    char *conda;      /* NULL: none */
    char **args;      /* NULL-terminated */
    uint64_t allowed; /* bit set of allowed GPUs; 0: any */
    char mode[SCHED_MODE_SIZE];
    const char *llm; /* value of --llm, points into args; NULL: none */
    double need;     /* in GPUs */
};

/* The GPUs that models need. */
struct sched_table {
    double standard;
    json_t *models; /* owned; {name: number}; NULL: none */
};

/* Rules for parsing lines. */
struct sched_rules {
    const struct sched_table *table;
    int n_gpus; /* GPU ids 0 to n-1 are valid */
    /* scheduler_10x: an invalid item in the GPU list rejects the line. */
    bool strict;
};

enum sched_line { SCHED_LINE_JOB, SCHED_LINE_NOTHING, SCHED_LINE_BAD };

/* *out is filled only for SCHED_LINE_JOB. *why gets errors and warnings. */
enum sched_line sched_line_parse(const char *text, size_t n, const struct sched_rules *rules,
                                 struct sched_spec *out, struct buf *why);
/* Fill the members that derive from script, arguments and so on. */
void sched_spec_finish(struct sched_spec *s, const struct sched_table *table);
void sched_spec_free(struct sched_spec *s);
/* shlex.split: words as in a POSIX shell. NULL with *why. The caller frees. */
char **sched_split(const char *text, struct buf *why);
/* The script in a job's command line as sched_request.c builds it (after --); *need is set if
 * the command line has it. The caller frees; NULL: not our job. */
char *sched_script_of(const char *command, double *need);
/* Parse "0-3,5", blanks allowed, into a bit set of existing GPUs. False with *why if strict
 * and an item is invalid. Warnings go to *why too. */
bool sched_gpus_read(const char *text, const struct sched_rules *rules, uint64_t *out,
                     struct buf *why);
/* Load a file of model requirements. False: *why has a warning, and the table has defaults. */
bool sched_table_load(struct sched_table *t, const char *path, struct buf *why);

/* --- sched_state.c --- */

struct sched_state {
    int n; /* number of GPUs in the file */
    double alloc[GPU_MAX];
    uint64_t paused;
    bool there; /* the file exists */
};

/* 0, also if the file does not exist; -1: it cannot be read. */
int sched_state_read(const char *path, struct sched_state *out, struct err *e);
/* Replace the file, both keys at once. */
int sched_state_write(const char *path, const struct sched_state *s, struct err *e);
/* Lock to hold while changing a file that other programs write too. Returns the descriptor or
 * -1. */
int sched_state_lock(const char *path, struct err *e);
/* `pause` and `resume` without the scheduler. 0: done; 1: already so. */
int sched_state_pause(const char *path, int gpu, int n_gpus, bool pause, struct err *e);
/* Number of GPUs, for commands that do not ask the daemon. */
int sched_count_cards(void);

/* Take the lock that gives the right to drive a state file. *last: what the last owner noted
 * in it, freed by the caller; NULL: nothing. Returns the descriptor or -1. */
int sched_own(const char *state_file, json_t **last, struct err *e);
/* Note about (JSON, stolen) in the lock, for the next owner and, if open, for sched_owner. Not
 * open: the scheduler is starting or stopping. */
int sched_own_tell(int lock, json_t *about, bool open, struct err *e);
/* What the owner of the state file noted in its lock; NULL: no owner, or not open. */
json_t *sched_owner(const char *state_file);

/* --- sched_log.c --- */

enum sched_level { SCHED_DEBUG, SCHED_INFO, SCHED_WARNING, SCHED_ERROR };

struct sched_log {
    const char *path;   /* borrowed; NULL: standard error only */
    const char *logger; /* name shown in lines */
    enum sched_level level;
    bool structured;   /* one JSON object per line */
    bool quiet;        /* do not write to standard error */
    int64_t max_bytes; /* rotate beyond this size; 0: never */
    int keep;          /* number of rotated files */
};

/* details: more members of a structured line, stolen; NULL: none. */
void sched_log(const struct sched_log *l, enum sched_level level, json_t *details,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));
struct sched;
/* True if this text was not logged before. */
bool sched_say_once(struct sched *s, const char *words);
/* The folder of job logs, created if missing. The caller frees. */
char *sched_log_dir(struct err *e);

/* --- the scheduler --- */

struct sched_config {
    const char *state_file, *jobs_file, *llm_file; /* jobs_file "": none */
    int n_gpus;                                    /* 0: all */
    double mem_threshold, load_threshold;
    double precision; /* overcommit tolerance: shares of a GPU may sum to 1 + this */
    double monitor_s, state_s;
    bool screen;
    bool cuda;       /* append --cuda with the physical ids to the arguments */
    bool local_cuda; /* ids as the job sees them behind its mask */
    bool is_10x;
    int retries;
    /* Only scheduler_10x: */
    char **allowed_paths; /* NULL: any */
    int64_t limit_ms, mem_mib, stop_ms;
    int64_t queue_max;   /* most pending jobs; 0: unlimited */
    int64_t running_max; /* most running jobs; 0: unlimited */
};

enum sched_status { SCHED_NEW, SCHED_WAITING, SCHED_RUNNING, SCHED_COMPLETED, SCHED_FAILED };

/* A job, indexed by its key. */
struct sched_job {
    struct sched_spec spec;
    enum sched_status status;
    bool added; /* from `add`, not a line of the file */
    bool in_file;
    bool held_back;   /* because of queue_max or paused GPUs: not sent to the daemon, or
                         (added) held there */
    uint64_t devices; /* added: GPUs it was submitted for */
    bool again;       /* ended, but should run once more */
    bool never;       /* cannot start: reported, not sent to the daemon */
    int line;
    int copies, said_copies; /* equal lines in the file: now, and when there last were some */
    int64_t left_us;         /* boot time at which the last copy vanished; 0: in the file */
    int64_t id;              /* the daemon's id; 0: none */
    int64_t stamp_us;        /* time of submission, part of the log's name */
    int n_gpus;
    uint8_t gpus[GPU_MAX];
    UT_hash_handle hh;
};

struct sched {
    struct sched_config config;
    struct sched_log log;
    struct sched_table table;
    struct compat_session session;
    struct sched_job *jobs;
    json_t *said;              /* messages logged already, each only once */
    struct run_file jobs_mark; /* of the jobs file as last read */
    char *root, *sync_path, *log_dir, *berth;
    char *tag;                 /* tag of all jobs of this state file */
    uint64_t exist;            /* existing GPUs */
    uint64_t managed;          /* those of them that we use */
    uint64_t paused;           /* as last agreed between state file and daemon */
    uint64_t paused_alone;     /* paused only here: the daemon does not allow us */
    int64_t look_due_us;       /* next sched_cards_look; 0: nothing changed */
    int64_t torn_us;           /* since when the state file is unreadable; 0: readable */
    int64_t no_room;           /* lines without room at the last sync */
    int64_t made_room;         /* jobs that have made room since */
    int64_t scan_us, round_us; /* next check of the jobs file, and of jobs and state file */
    int64_t started_us;
    int last_line; /* last line sent to the daemon; 0: none */
    bool file_due; /* a changed file has not been read yet */
    bool sync_due; /* something is to be sent */
    bool all_due;  /* not only lines after last_line */
    bool leaving, began_look, is_ready;
    int lock;                          /* descriptor of the state file's lock */
    void (*on_leave)(struct sched *s); /* may be NULL */
    bool missing;                      /* a script did not exist */
    bool no_priority;                  /* this user may not raise priorities above 0 */
    char *failure;                     /* why start failed; owned */
    char *complaint;                   /* last error that is being retried; owned */
};

/* All of `start` (sched_run.c). The caller fills config and log; settings are for our own
 * daemon. on_ready is called when the scheduler runs. Returns the exit status. */
int sched_start(struct sched *s, const char *const *settings, int (*on_ready)(struct sched *s));
/* Update the note in the lock. */
void sched_tell_about(struct sched *s);
void sched_free(struct sched *s);

/* sched_file.c */
void sched_load(struct sched *s); /* read the jobs file */
/* True if the settings allow this script. */
bool sched_script_allowed(char *const *allowed_paths, const char *script, struct buf *why);

/* sched_request.c */
/* Fill a request that request_init prepared. */
void sched_request_fill(const struct sched *s, const struct sched_job *job, struct request *r);
int sched_cards_needed(const struct sched *s, double need);
uint64_t sched_devices(const struct sched *s, const struct sched_job *job);

/* sched_queue.c */
void sched_tell_all(struct sched *s); /* send everything with the next sched_sync */
/* True if a new line may be sent alone: with its priority, after the lines already sent, it
 * gets its right turn. */
bool sched_comes_last(const struct sched *s, const struct sched_job *job);
int sched_sync(struct sched *s, struct err *e);
/* Keep lines of the file from starting: pending jobs are held in our own daemon until the next
 * start; from another user's daemon they are removed. */
int sched_put_aside(struct sched *s, struct err *e);
/* Callbacks of struct compat_front. */
bool sched_fill_request(void *sched, void *sched_job, struct request *r);
void sched_entered(void *sched, void *sched_job, const char *state);
enum compat_found sched_found(void *sched, void *sched_job, const char *state);
void sched_adopt(void *sched, void *sched_job, const json_t *object);
void sched_refused(void *sched, void *sched_job, const char *why);
/* The job is about to start or end: lines without room may now fit. */
void sched_make_room(struct sched *s, const struct sched_job *job, bool ended);
/* Mark the job as running on these GPUs: indices, or objects with an index. */
void sched_set_running(struct sched_job *job, const json_t *gpus);
json_t *sched_details(const struct sched_job *job); /* members for sched_log */

/* sched_events.c */
/* True if a person cancelled the job, so that it is not run again; `by`: cancelled_by, or
 * "". */
bool sched_called_off(const char *state, const char *by);
int sched_recall_added(struct sched *s, struct err *e);
/* Fetch the jobs that `add` has submitted to the daemon so far. */
int sched_list_added(struct sched *s, struct err *e);
/* Hold pending added jobs that may use a GPU of paused_alone; release those held for such a
 * GPU before. */
int sched_hold_paused(struct sched *s, struct err *e);
void sched_take_events(void *sched);
/* Start nothing more, and end running jobs. */
int sched_stop(void *sched, struct err *e);
bool sched_any_to_await(const void *sched); /* running jobs that are being ended */

/* sched_cards.c */
int sched_cards_read(struct sched *s, struct err *e);
/* Bring state file and daemon into agreement: apply edits of paused_gpus, write
 * allocations. */
int sched_cards_look(struct sched *s, struct err *e);
/* The reason given when a card is paused, which distinguishes the pauses of one state file
 * from those of another that shares the daemon; the caller frees it. */
char *sched_pause_reason(const char *tag);

/* sched_ask.c */
struct client;
/* The daemon of the scheduler that owns this state file; NULL: none. */
struct client *sched_connect(const char *state_file);
/* Fail if jobs with this tag are left with the daemon noted in `last` and it is not `now`:
 * they would run twice. */
int sched_check_left(const json_t *last, const struct client *now, const char *tag,
                     struct err *e);
/* Add "PRIORITY,script,conda,args,gpus"; any of the last three may be NULL. -1: a field would
 * be parsed as something else. */
int sched_line_add(struct buf *out, int64_t priority, const char *script,
                   const char *const fields[3], struct err *e);
/* Turn rows of an answer into objects with these fields, a list of names. The caller owns the
 * list. */
json_t *sched_objects(const json_t *rows, const json_t *fields);
/* Pending and running jobs with this tag, as a list of objects that the caller owns. NULL with
 * e. */
json_t *sched_live_jobs(struct client *c, const char *tag, struct err *e);
/* Add a numbered list of screen sessions under the title, or `none` if there are none. */
void sched_add_screens(struct buf *out, struct client *c, const char *title, const char *none);

#endif
