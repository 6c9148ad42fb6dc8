/* Shared by the files of the drop-in gpusched. gpusched.c has the main loop,
 * gpusched_options.c reads the options, gpusched_jobs.c parses the jobs file,
 * gpusched_journal.c reads and writes the journal, gpusched_queue.c compares lines with the
 * journal, gpusched_sync.c sends them to the daemon and recovers jobs of earlier runs,
 * gpusched_events.c takes the daemon's events, gpusched_end.c reports how jobs ended and
 * prints the summary, gpusched_board.c draws status.txt, gpusched_simjob.c is the simulated
 * GPU program. The journal says which lines are finished, the daemon which jobs are pending
 * and running. */
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
    double vram_mib; /* per GPU, in whole MiB; 0: undeclared */
    int64_t gpus;
    double timeout_s; /* 0: none */
    int64_t retries;
    bool cancel;
    char key[GS_KEY_SIZE];
    struct gs_job *job; /* set once the whole file is valid */
};

struct gs_jobs {
    struct gs_spec *at; /* owned */
    size_t n, cap;
};

/* 0; -1 with why ("jobs file line 3: ...") and no lines. */
int gs_jobs_parse(const char *text, size_t len, struct gs_jobs *out, struct buf *why);
void gs_jobs_free(struct gs_jobs *j);

/* --- a job --- */

/* A job's current attempt. */
struct gs_run {
    int64_t attempt;
    int64_t pgid; /* 0: not known yet */
    bool journaled;
    int64_t started_boot_us;
    int n_gpus;
    int gpus[GPU_MAX];
    int64_t last_mib[GPU_MAX]; /* for each of gpus; -1: not attributed */
    int64_t peak_mib[GPU_MAX];
    double vram_mib; /* of this attempt; 0: undeclared */
    double timeout_s;
    bool over_warned, timed_out, cancelled, escalated;
    int64_t killed_boot_us; /* boot time of SIGTERM; 0: not sent */
    int64_t said_peak;      /* peak that --verbose printed last */
    size_t place;           /* index in gpusched.running */
};

/* What the journal and this process know about a line, by its key. */
struct gs_job {
    char key[GS_KEY_SIZE];
    int64_t no; /* number in messages and log names; 0: none yet */
    char *command;
    int64_t attempts; /* ended attempts */
    bool terminal, ok;
    bool before;        /* finished before this run: */
    const char *status; /* how; a static string */
    int64_t code;
    bool known; /* in the journal before this run */
    bool skip_said;
    bool orphan_said;
    int64_t next_vram;          /* demand after an OOM, in MiB; 0: as declared */
    bool was_running;           /* started by another or earlier gpusched, with no end noted */
    int64_t running_pgid;       /* its process group; 0: none */
    int64_t id;                 /* the daemon's id; 0: none */
    int64_t oom_base;           /* attempts before the daemon got the job; -1: it did not */
    int lost;                   /* number of times its supervisor vanished */
    bool waits;                 /* its line is pending since the last tick */
    bool touched;               /* in gpusched.touched */
    bool unwanted;              /* pending again without a line, to be cancelled */
    const struct gs_spec *spec; /* its line; NULL: not in the file */
    struct gs_run *run;         /* owned; NULL: not running */
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
    uint64_t devices; /* bit set of --gpus; 0: all */
    bool gpus_said;
    int64_t idle_mib, margin_mib, oom_retries;
    double tolerance, poll_s, spike_buffer;
    bool exclusive, watch, fresh, verbose;
    const char *gpus; /* text of --gpus; NULL: not given */
    struct pyarg_value sim;
};

struct gpusched {
    struct gs_options opt;
    struct compat_session session;
    struct gs_jobs specs;   /* of the last valid file */
    struct buf last_text;   /* of the jobs file as last parsed */
    struct buf said_broken; /* last error reported for it */
    struct gs_job *jobs;    /* by key */
    int64_t next_no;
    struct buf journal; /* lines not yet written */
    bool journal_broken;
    bool anew;          /* no journal: first run, --fresh, or it was removed */
    int64_t journal_us; /* wall time of its last write before this run; 0: none */
    char *journal_path, *board_path, *log_root, *sync_path;
    char *sim, **settings; /* for the tool's own daemon */
    struct buf out;        /* lines not yet printed */
    struct gs_result *results;
    size_t n_results, cap_results;
    struct gs_job **running; /* owned array of borrowed jobs, unordered */
    size_t n_running, cap_running;
    struct gs_job **starting; /* running jobs not yet journaled, in order of start */
    size_t n_starting, cap_starting;
    struct gs_job **touched; /* likewise; jobs whose line the next tick checks */
    size_t n_touched, cap_touched;
    size_t n_pending;
    size_t n_unwanted;
    bool drop_due;      /* unwanted jobs are to be cancelled */
    struct buf trouble; /* last reported reason why nothing starts */
    bool orphans;       /* the last look found orphans of the original */
    struct compat_cards cards;
    bool look_due;   /* all lines are to be checked again */
    bool sync_due;   /* pending lines are to be sent to the daemon */
    bool empty_seen; /* the file was empty when last read: perhaps a save in progress */
    bool leaving;    /* after Ctrl-C */
    bool wait_said;
    bool left;             /* stopped without ending its jobs */
    int64_t looked_us;     /* boot time of the last check of running jobs */
    int64_t round_due_us;  /* boot time of the next one */
    int64_t board_due_us;  /* boot time of the next drawing; 0: no change */
    int64_t board_rest_us; /* not drawn before this boot time */
};

/* --- gpusched_options.c --- */

/* Set members of *o, which the caller zeroed. Returns -1 to continue, else the exit status. */
int gs_read_options(struct gs_options *o, int argc, char **argv);

/* --- gpusched_journal.c --- */

/* Load the journal; invalid lines are skipped. */
int gs_journal_load(struct gpusched *g, struct err *e);
/* Write noted lines durably. A failure is reported once. */
void gs_journal_flush(struct gpusched *g);
struct gs_job *gs_job_of(struct gpusched *g, const char *key); /* created if new */
/* The job's number, assigned on first sight. */
int64_t gs_seen(struct gpusched *g, struct gs_job *job, const char *command);
void gs_note_started(struct gpusched *g, struct gs_job *job);
void gs_note_interrupted(struct gpusched *g, struct gs_job *job);
void gs_note_oom(struct gpusched *g, struct gs_job *job, int64_t next_vram);
/* run NULL: it never ran; util negative: unknown. */
void gs_note_done(struct gpusched *g, struct gs_job *job, const char *status, int64_t code,
                  const struct gs_run *run, double util);

/* --- gpusched_queue.c --- */

/* Read the jobs file. With first: -1 with the error in words. Otherwise an error is reported
 * once and the last valid queue is kept. */
int gs_read_file(struct gpusched *g, bool first, struct buf *words);
/* Apply the lines: cancel jobs, determine pending ones, and send them to the daemon if due. */
int gs_tick(struct gpusched *g, struct err *e);
/* Make the next tick check the job's line. */
void gs_touch(struct gpusched *g, struct gs_job *job);

/* --- gpusched_sync.c --- */

/* Before the first tick: adopt jobs of an earlier run, or settle their ends. */
int gs_recall(struct gpusched *g, struct err *e);
/* True if a job of another, dead gpusched is still running, so its line must not be
 * started. */
bool gs_is_orphan(struct gpusched *g, struct gs_job *job);
/* Send pending lines to the daemon and adopt those already active there. On a full disk the
 * sync stays due. */
int gs_sync(struct gpusched *g, struct err *e);
/* Report when the daemon cannot write to its disk, and when it can again. */
int gs_look_at_disk(struct gpusched *g, struct err *e);
/* Callbacks of struct compat_front. */
bool gs_fill_request(void *gpusched, void *gs_job, struct request *r);
void gs_entered(void *gpusched, void *gs_job, const char *state);
enum compat_found gs_found(void *gpusched, void *gs_job, const char *state);
void gs_known(void *gpusched, void *gs_job, const char *state);
/* True if no set of usable GPUs would do, even when idle; *why gets the reason. */
bool gs_is_infeasible(const struct gpusched *g, double vram_mib, int64_t gpus, struct buf *why);
void gs_mark_infeasible(struct gpusched *g, struct gs_job *job, const char *why);
/* OOM retries of the line: its own or the option's, whichever is more. */
int64_t gs_oom_allowed(const struct gpusched *g, const struct gs_spec *spec);

/* --- gpusched_events.c --- */

void gs_take_events(void *gpusched);
/* Update memory use of running jobs; report exceeded declarations and time limits. */
int gs_look_at_running(struct gpusched *g, struct err *e);
/* Boot time at which the next running job reaches its limit; INT64_MAX: none will. */
int64_t gs_late_due(const struct gpusched *g);
/* Adopt a running job, or settle an ended one, from its object. */
void gs_adopt(void *gpusched, void *job, const json_t *object);

/* --- gpusched_end.c --- */

/* Print "[14:02:10] message\n" with the next flush. */
void gs_say(struct gpusched *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gs_warn(struct gpusched *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write the journal, then print the lines. */
void gs_flush(struct gpusched *g);
void gs_add_result(struct gpusched *g, struct gs_job *job, int64_t code, int64_t peak,
                   const char *verdict);
void gs_finish(struct gpusched *g, struct gs_job *job, const json_t *ended);
void gs_check_exceeds(struct gpusched *g, struct gs_job *job);
int64_t gs_run_peak(const struct gs_run *run, int *slot); /* peak of all GPUs, *slot its index
                                                             in gpus; 0: not attributed */
bool gs_has_failed(const struct gs_result *r);
int gs_summary(struct gpusched *g); /* returns the exit status */

/* --- gpusched_board.c --- */

void gs_draw_board(struct gpusched *g);

/* --- gpusched_simjob.c --- */

/* Make `python3 -m gpusched.simjob` in jobs run Berth's version: creates a package below dir
 * and puts dir first in PYTHONPATH. */
int gs_offer_module(const char *dir, struct err *e);

#endif
