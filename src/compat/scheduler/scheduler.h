/* What the drop-ins `scheduler` and `scheduler_10x` share: the same jobs file, state file and
 * rules, with other settings. scheduler.c and scheduler10x.c read the command lines;
 * sched_line.c a line of the jobs file, sched_file.c all of it; sched_state.c the state file,
 * by which users pause GPUs; sched_log.c writes the log; sched_request.c says what a job asks
 * for; sched_queue.c sends the daemon what waits, sched_events.c takes its events;
 * sched_cards.c keeps cards and state file in step; sched_run.c is `start`; sched_ask.c is for
 * commands beside it; sched_job.c runs inside a job and writes its log. The
 * daemon knows what waits and runs and what has ended: all of this can be thrown away and made
 * again. */
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

/* How the process around a script ends when its memory, or its script, is not allowed. */
#define SCHED_OVER_MEMORY 137
#define SCHED_NOT_ALLOWED 126

/* Why a scheduler cancels jobs that a later one may run again. */
#define SCHED_STOP_WHY "its scheduler stopped"

#define SCHED_KEY_SIZE  41
#define SCHED_MODE_SIZE 24

/* --- sched_line.c --- */

/* What a line asks for; also what `add` was given. */
struct sched_spec {
    char key[SCHED_KEY_SIZE]; /* script, environment, arguments in their order, GPUs */
    char *text;               /* the line; owned, as are those below */
    int64_t priority;         /* lower first */
    char *script;
    char *conda;      /* NULL: none */
    char **args;      /* NULL-terminated */
    uint64_t allowed; /* bits; 0: any */
    char mode[SCHED_MODE_SIZE];
    const char *llm; /* the value of --llm in args; NULL */
    double need;     /* of GPUs */
};

/* What models need. */
struct sched_table {
    double standard;
    json_t *models; /* owned; name: number. NULL: none */
};

/* How lines are read. */
struct sched_rules {
    const struct sched_table *table;
    int n_gpus; /* ids 0 to n-1 exist */
    /* A piece of the GPUs that is none refuses the line, as scheduler_10x has it. */
    bool strict;
};

enum sched_line { SCHED_LINE_JOB, SCHED_LINE_NOTHING, SCHED_LINE_BAD };

/* *out is filled for SCHED_LINE_JOB only. *why: what is wrong, or to be warned of. */
enum sched_line sched_line_parse(const char *text, size_t n, const struct sched_rules *rules,
                                 struct sched_spec *out, struct buf *why);
/* The rest of a spec from its script, arguments and so on. */
void sched_spec_finish(struct sched_spec *s, const struct sched_table *table);
void sched_spec_free(struct sched_spec *s);
/* shlex.split: words as a POSIX shell takes them apart. NULL with *why. The caller frees. */
char **sched_split(const char *text, struct buf *why);
/* What a job runs, by its command line (sched_request.c): behind -- stand script and arguments.
 * And what it needs, where that is said. The caller frees; NULL: it is none of ours. */
char *sched_script_of(const char *command, double *need);
/* "0-3,5" with blanks: bits of what exists. False with *why when strict and a piece is none.
 * Warnings go to *why too. */
bool sched_gpus_read(const char *text, const struct sched_rules *rules, uint64_t *out,
                     struct buf *why);
/* A file of requirements. False: *why is a warning, and the table has defaults. */
bool sched_table_load(struct sched_table *t, const char *path, struct buf *why);

/* --- sched_state.c --- */

struct sched_state {
    int n; /* how many GPUs it speaks of */
    double alloc[GPU_MAX];
    uint64_t paused;
    bool there; /* the file is */
};

/* 0, also when there is no such file; -1: it cannot be read. */
int sched_state_read(const char *path, struct sched_state *out, struct err *e);
/* Both keys at once, in place of the file. */
int sched_state_write(const char *path, const struct sched_state *s, struct err *e);
/* Held while a file that another program wrote is changed; the descriptor, or -1. */
int sched_state_lock(const char *path, struct err *e);
/* `pause` and `resume` from outside: 0; 1: it was so already. */
int sched_state_pause(const char *path, int gpu, int n_gpus, bool pause, struct err *e);
/* How many cards there are for commands that ask no daemon. */
int sched_count_cards(void);

/* Takes the right to drive a state file. *last: what the one before wrote about itself; NULL,
 * or the caller's. The descriptor of the lock, or -1. */
int sched_own(const char *state_file, json_t **last, struct err *e);
/* What it says of itself (JSON, stolen): for the next one, and if it is open for sched_owner.
 * Not open, it begins or stops. */
int sched_own_tell(int lock, json_t *about, bool open, struct err *e);
/* What the one that drives it says of itself; NULL when there is none that is open. */
json_t *sched_owner(const char *state_file);

/* --- sched_log.c --- */

enum sched_level { SCHED_DEBUG, SCHED_INFO, SCHED_WARNING, SCHED_ERROR };

struct sched_log {
    const char *path;   /* borrowed; NULL: standard error only */
    const char *logger; /* its name in a line */
    enum sched_level level;
    bool structured;   /* a JSON object a line */
    bool quiet;        /* not to standard error */
    int64_t max_bytes; /* then it is put aside; 0: never */
    int keep;          /* how many that were */
};

/* details: more members of a structured line, stolen; NULL: none. */
void sched_log(const struct sched_log *l, enum sched_level level, json_t *details,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));
struct sched;
/* True the first time that these words are to be logged. */
bool sched_say_once(struct sched *s, const char *words);
/* The folder of job logs, made when it is not there; owned by the caller. */
char *sched_log_dir(struct err *e);

/* --- the scheduler --- */

struct sched_config {
    const char *state_file, *jobs_file, *llm_file; /* jobs_file "": none */
    int n_gpus;                                    /* 0: all there are */
    double mem_threshold, load_threshold;
    double precision; /* a GPU takes so much more than 1 */
    double monitor_s, state_s;
    bool screen;
    bool cuda;       /* --cuda with the physical ids behind the arguments */
    bool local_cuda; /* ids as the job sees them */
    bool is_10x;
    int retries;
    /* scheduler_10x */
    char **allowed_paths; /* NULL: any */
    int64_t limit_ms, mem_mib, stop_ms;
    int64_t queue_max;   /* that may wait; 0: any number */
    int64_t running_max; /* at once; 0: any number */
};

enum sched_status { SCHED_NEW, SCHED_WAITING, SCHED_RUNNING, SCHED_COMPLETED, SCHED_FAILED };

/* A job, by its key. */
struct sched_job {
    struct sched_spec spec;
    enum sched_status status;
    bool added; /* by `add`: no line of the file */
    bool in_file;
    bool held_back;   /* of too many, or GPUs that are paused: not sent to the daemon yet, or
                       * (added) held there */
    uint64_t devices; /* of an added one: what it was given to run on */
    bool again;       /* it has ended, and is to run once more */
    bool never;       /* cannot start: reported, and not sent to the daemon */
    int line;
    int copies, said_copies; /* lines that say the same: now, when there last were some */
    int64_t left_us;         /* boot time at which there were none any more; 0: there are */
    int64_t id;              /* the daemon's; 0: none */
    int64_t stamp_us;        /* when it was handed on: in its log's name */
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
    json_t *said;              /* complaints that were made: each is made once */
    struct run_file jobs_mark; /* of the jobs file as it was read */
    char *root, *sync_path, *log_dir, *berth;
    char *tag;                 /* of all jobs of this state file */
    uint64_t exist;            /* cards that there are */
    uint64_t managed;          /* of them, ours */
    uint64_t paused;           /* that the state file and we agree on */
    uint64_t paused_alone;     /* where the daemon does not let us pause */
    int64_t look_due_us;       /* at cards and state file; 0: nothing has happened */
    int64_t torn_us;           /* since when that cannot be read; 0: it can */
    int64_t no_room;           /* lines that had none in the queue at the last telling */
    int64_t made_room;         /* jobs that have made some since then */
    int64_t scan_us, round_us; /* the next look at the jobs file, at both */
    int64_t started_us;
    int last_line; /* of the file that was sent to the daemon; 0: none */
    bool file_due; /* a file has changed that was not looked at yet */
    bool sync_due; /* there is something to send */
    bool all_due;  /* and more than lines behind the last one */
    bool leaving, began_look, is_ready;
    int lock;                          /* that this process drives the state file */
    void (*on_leave)(struct sched *s); /* NULL: nothing more is said */
    bool missing;                      /* some script was not there */
    bool no_priority;                  /* above the usual, for this user */
    char *failure;                     /* why it did not start; owned */
    char *complaint; /* what could not be done last, and is tried again; owned */
};

/* The whole of `start`: sched_run.c. Config and log are filled; settings are for a daemon
 * of its own. on_ready is called when it works. Returns the exit status. */
int sched_start(struct sched *s, const char *const *settings, int (*on_ready)(struct sched *s));
/* What the lock says of it is to change. */
void sched_tell_about(struct sched *s);
void sched_free(struct sched *s);

/* sched_file.c */
void sched_load(struct sched *s); /* the jobs file */
/* Whether the settings let this script run. */
bool sched_script_allowed(char *const *allowed_paths, const char *script, struct buf *why);

/* sched_request.c */
/* The request of a job, over what request_init made. */
void sched_request_fill(const struct sched *s, const struct sched_job *job, struct request *r);
int sched_cards_needed(const struct sched *s, double need);
uint64_t sched_devices(const struct sched *s, const struct sched_job *job);

/* sched_queue.c */
void sched_tell_all(struct sched *s); /* with the next sched_sync */
/* Such a line may be new: sent alone it would stand where it belongs. */
bool sched_comes_last(const struct sched *s, const struct sched_job *job);
int sched_sync(struct sched *s, struct err *e);
/* Nothing of the file starts any more: what waits is held in a daemon of our own, until the
 * next start; in another user's it leaves the queue. */
int sched_put_aside(struct sched *s, struct err *e);
/* As struct compat_front calls them. */
bool sched_fill_request(void *sched, void *sched_job, struct request *r);
void sched_entered(void *sched, void *sched_job, const char *state);
enum compat_found sched_found(void *sched, void *sched_job, const char *state);
void sched_adopt(void *sched, void *sched_job, const json_t *object);
void sched_refused(void *sched, void *sched_job, const char *why);
/* It is about to start or to end: there may be room for lines that had none. */
void sched_make_room(struct sched *s, const struct sched_job *job, bool ended);
/* It runs on these cards: indices, or objects with them. */
void sched_set_running(struct sched_job *job, const json_t *gpus);
json_t *sched_details(const struct sched_job *job); /* for the log */

/* sched_events.c */
/* Whether a person ended it, so that it is not run again; `by`: cancelled_by, "" for none. */
bool sched_called_off(const char *state, const char *by);
int sched_recall_added(struct sched *s, struct err *e);
/* Learns of those that the daemon has by now. */
int sched_list_added(struct sched *s, struct err *e);
/* Holds those that wait and may use a GPU of paused_alone, and releases the others that were
 * held for one. */
int sched_hold_paused(struct sched *s, struct err *e);
void sched_take_events(void *sched);
/* Nothing more starts, and what runs is to end. */
int sched_stop(void *sched, struct err *e);
bool sched_any_to_await(const void *sched); /* that are being ended */

/* sched_cards.c */
int sched_cards_read(struct sched *s, struct err *e);
/* State file and daemon agree again: edits of paused_gpus act, allocations are written. */
int sched_cards_look(struct sched *s, struct err *e);
/* The reason given when a card is paused, which distinguishes the pauses of one state file
 * from those of another that shares the daemon; the caller frees it. */
char *sched_pause_reason(const char *tag);

/* sched_ask.c */
struct client;
/* The daemon of the scheduler that drives this state file; NULL: there is none. */
struct client *sched_connect(const char *state_file);
/* That jobs with this tag are left with no other daemon than now's, the one that worked last:
 * they would run twice. */
int sched_check_left(const json_t *last, const struct client *now, const char *tag,
                     struct err *e);
/* "0,script,conda,args,gpus" from the last three fields, of which any may be NULL. -1: what
 * would be read as something else. */
int sched_line_add(struct buf *out, int64_t priority, const char *script,
                   const char *const fields[3], struct err *e);
/* Rows of an answer about jobs as objects with these fields, a list of names; the caller's. */
json_t *sched_objects(const json_t *rows, const json_t *fields);
/* Jobs that bear the tag and wait or run, as objects; a list of the caller's. NULL with e. */
json_t *sched_live_jobs(struct client *c, const char *tag, struct err *e);
/* Numbered lines, under the title; none: what is said without any. */
void sched_add_screens(struct buf *out, struct client *c, const char *title, const char *none);

#endif
