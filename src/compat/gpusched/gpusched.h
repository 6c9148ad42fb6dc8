/* What the files of the drop-in gpusched share. gpusched.c loops, gpusched_options.c reads the
 * options; gpusched_jobs.c reads its jobs file; gpusched_journal.c its journal;
 * gpusched_queue.c holds the lines against it; gpusched_sync.c sends them to the daemon, and
 * finds again what an earlier run has left; gpusched_events.c takes the daemon's events;
 * gpusched_end.c says how a job ended and sums up; gpusched_board.c draws status.txt;
 * gpusched_simjob.c is the pretend GPU program. The journal says what is over, the daemon what
 * waits and runs. */
#ifndef COMPAT_GPUSCHED_GPUSCHED_H
#define COMPAT_GPUSCHED_GPUSCHED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/request.h"
#include "compat/engine/compat_cards.h"
#include "compat/engine/compat_session.h"
#include "compat/engine/sent_lines.h"
#include "compat/py/pyarg.h"

struct err;

#define GS_VERSION  "0.4.0"
#define GS_KEY_SIZE 32 /* 12 hex digits, '#', occurrence */
#define GS_SIM_MIB  24000
#define GS_GRACE_US 10000000

/* --- gpusched_jobs.c --- */

struct gs_job;

/* One line of the jobs file. */
struct gs_spec {
    char *command;   /* owned */
    double vram_mib; /* per GPU, whole; 0: undeclared */
    int64_t gpus;
    double timeout_s; /* 0: none */
    int64_t retries;
    bool cancel;
    char key[GS_KEY_SIZE];
    struct gs_job *job; /* what is known of it; set once the file is good */
};

struct gs_jobs {
    struct gs_spec *at; /* owned */
    size_t n, cap;
};

/* 0; -1 with why, "jobs file line 3: ...", and no lines. */
int gs_jobs_parse(const char *text, size_t len, struct gs_jobs *out, struct buf *why);
void gs_jobs_free(struct gs_jobs *j);

/* --- a job --- */

/* While it runs, or is known to. */
struct gs_run {
    int64_t attempt;
    int64_t pgid; /* 0: not known yet */
    bool journaled;
    int64_t started_boot_us;
    int n_gpus;
    int gpus[GPU_MAX];
    int64_t last_mib[GPU_MAX]; /* per slot of gpus; -1: not attributed */
    int64_t peak_mib[GPU_MAX];
    double vram_mib; /* of this attempt; 0: undeclared */
    double timeout_s;
    bool over_warned, timed_out, cancelled, escalated;
    int64_t killed_boot_us; /* TERM was sent; 0: not */
    int64_t said_peak;      /* by --verbose */
    size_t place;           /* in gpusched.running */
};

/* What the journal and this process know of a line, by its key. */
struct gs_job {
    char key[GS_KEY_SIZE];
    int64_t no; /* 0: not seen yet */
    char *command;
    int64_t attempts; /* that have ended */
    bool terminal, ok;
    bool before;        /* was over before this run: */
    const char *status; /* of static life; how */
    int64_t code;
    bool known; /* the journal had it before this run */
    bool skip_said;
    bool orphan_said;
    int64_t next_vram;    /* after an OOM; 0: as declared */
    bool was_running;     /* begun by another gpusched (or an earlier one), no end known */
    int64_t running_pgid; /* its group; 0: none */
    int64_t id;           /* the daemon's; 0: none */
    int64_t oom_base;     /* attempts before the daemon had it; -1: it has not had it */
    int lost;             /* how often its supervisor vanished */
    bool waits;           /* its line is pending, as of the last tick */
    bool touched;         /* is in gpusched.touched */
    bool unwanted;        /* waits again without a line, until the daemon has ended it */
    const struct gs_spec *spec; /* its line; NULL: the file has none */
    struct gs_run *run;         /* owned; NULL: does not run */
    UT_hash_handle hh;
};

struct gs_result {
    struct gs_job *job;
    int64_t code;
    int64_t peak_mib;
    const char *verdict;
};

struct gs_options {
    const char *jobs_path;
    const char *log_dir;
    uint64_t devices; /* --gpus; 0: all */
    bool gpus_said;
    int64_t idle_mib, margin_mib, oom_retries;
    double tolerance, poll_s, spike_buffer;
    bool exclusive, watch, fresh, verbose;
    const char *gpus; /* as it was said; NULL */
    struct pyarg_value sim;
};

struct gpusched {
    struct gs_options opt;
    struct compat_session session;
    struct gs_jobs specs;   /* the last good ones */
    struct buf last_text;   /* of the jobs file, as it was parsed */
    struct buf said_broken; /* the last complaint about it */
    struct gs_job *jobs;    /* by key */
    int64_t next_no;
    struct buf journal; /* lines to be written */
    bool journal_broken;
    bool anew;          /* it is the first run, or --fresh, or the journal was removed */
    int64_t journal_us; /* when it was last written before this run, wall time; 0: never */
    char *journal_path, *board_path, *log_root, *sync_path;
    char *sim, **settings; /* of a daemon of its own */
    struct buf out;        /* lines to be printed */
    struct gs_result *results;
    size_t n_results, cap_results;
    struct gs_job **running; /* owned; of borrowed jobs, in no order */
    size_t n_running, cap_running;
    struct gs_job **starting; /* those of them that are not journaled yet, in their order */
    size_t n_starting, cap_starting;
    struct gs_job **touched; /* likewise: those whose line is to be looked at again */
    size_t n_touched, cap_touched;
    size_t n_pending;
    size_t n_unwanted;
    bool drop_due;      /* the daemon is to be told of those */
    struct buf trouble; /* why nothing new starts, as it was said */
    bool orphans;       /* of the original run at the last look */
    struct compat_cards cards;
    bool look_due;   /* every line is to be looked at again */
    bool sync_due;   /* what waits is to be sent to the daemon */
    bool empty_seen; /* the file held nothing at the last look: perhaps a save half done */
    bool leaving;    /* Ctrl-C has come */
    bool wait_said;
    bool left;             /* jobs go on without it */
    int64_t looked_us;     /* boot time of the last look at what runs */
    int64_t round_due_us;  /* boot time of the next look at what runs */
    int64_t board_due_us;  /* when the board is to be drawn again; 0: nothing has changed */
    int64_t board_rest_us; /* and not before this */
};

/* --- gpusched_options.c --- */

/* Over what is zeroed. -1: go on; else the program ends with that status. */
int gs_read_options(struct gs_options *o, int argc, char **argv);

/* --- gpusched_journal.c --- */

/* Reads the journal; what cannot be read of it is passed over. */
int gs_journal_load(struct gpusched *g, struct err *e);
/* Writes what has been noted, durably. Says once when it cannot. */
void gs_journal_flush(struct gpusched *g);
struct gs_job *gs_job_of(struct gpusched *g, const char *key); /* made when new */
/* Numbers it on first sight. */
int64_t gs_seen(struct gpusched *g, struct gs_job *job, const char *command);
void gs_note_started(struct gpusched *g, struct gs_job *job);
void gs_note_interrupted(struct gpusched *g, struct gs_job *job);
void gs_note_oom(struct gpusched *g, struct gs_job *job, int64_t next_vram);
/* run NULL: it never ran. util negative: not known. */
void gs_note_done(struct gpusched *g, struct gs_job *job, const char *status, int64_t code,
                  const struct gs_run *run, double util);

/* --- gpusched_queue.c --- */

/* Reads the jobs file. At the start -1 with what is wrong in words; later it warns, once for
 * each complaint, and the last good queue stays. */
int gs_read_file(struct gpusched *g, bool first, struct buf *words);
/* Obeys the lines: what is to be stopped, what waits; it is sent to the daemon when that is
 * due. */
int gs_tick(struct gpusched *g, struct err *e);
/* Something has happened of it: the next tick looks whether its line waits. */
void gs_touch(struct gpusched *g, struct gs_job *job);

/* --- gpusched_sync.c --- */

/* Before the first tick: what was begun earlier is taken over, or settled. */
int gs_recall(struct gpusched *g, struct err *e);
/* Begun by another gpusched that has died, and still there: nothing is started. */
bool gs_is_orphan(struct gpusched *g, struct gs_job *job);
/* Sends the daemon what waits, and takes over what it has of that. With no room on its disk
 * that stays due. */
int gs_sync(struct gpusched *g, struct err *e);
/* Says when the daemon cannot write, and when it can again. */
int gs_look_at_disk(struct gpusched *g, struct err *e);
/* As struct compat_front calls them. */
bool gs_fill_request(void *gpusched, void *gs_job, struct request *r);
void gs_entered(void *gpusched, void *gs_job, const char *state);
enum compat_found gs_found(void *gpusched, void *gs_job, const char *state);
void gs_known(void *gpusched, void *gs_job, const char *state);
/* Why no set of usable cards would do, even empty; false when one would. */
bool gs_is_infeasible(const struct gpusched *g, double vram_mib, int64_t gpus, struct buf *why);
void gs_mark_infeasible(struct gpusched *g, struct gs_job *job, const char *why);
/* Retries after an OOM that the line has, or all have. */
int64_t gs_oom_allowed(const struct gpusched *g, const struct gs_spec *spec);

/* --- gpusched_events.c --- */

void gs_take_events(void *gpusched);
/* Memory as it is now, what exceeds, what is late. */
int gs_look_at_running(struct gpusched *g, struct err *e);
/* Boot time at which the next of those that run is late; INT64_MAX: none will be. */
int64_t gs_late_due(const struct gpusched *g);
/* Takes over a job that runs, or settles one that has ended, from its object (adopt). */
void gs_adopt(void *gpusched, void *job, const json_t *object);

/* --- gpusched_end.c --- */

/* "[14:02:10] words\n" to be printed. */
void gs_say(struct gpusched *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gs_warn(struct gpusched *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Journal first, then the lines. */
void gs_flush(struct gpusched *g);
void gs_add_result(struct gpusched *g, struct gs_job *job, int64_t code, int64_t peak,
                   const char *verdict);
void gs_finish(struct gpusched *g, struct gs_job *job, const json_t *ended);
void gs_check_exceeds(struct gpusched *g, struct gs_job *job);
int64_t gs_run_peak(const struct gs_run *run, int *slot); /* 0: never attributed */
bool gs_has_failed(const struct gs_result *r);
int gs_summary(struct gpusched *g); /* the exit status */

/* --- gpusched_board.c --- */

void gs_draw_board(struct gpusched *g);

/* --- gpusched_simjob.c --- */

/* Lets `python3 -m gpusched.simjob` of the jobs find Berth's: a package below dir, put in front
 * of PYTHONPATH. */
int gs_offer_module(const char *dir, struct err *e);

#endif
