/* The durable half of the daemon: one SQLite file, state/berth.db, with every job, attempt,
 * captured environment, jobs file and event. berthd is its only user and holds one exclusive
 * connection, used from one thread.
 *
 * One turn of the daemon is one transaction. The first write opens it. store_commit makes it
 * durable (fsync), and is a no-op when nothing was written. After a failed write, all further
 * writes of the turn fail with the same error, and store_commit rolls everything back and
 * fails too, so a caller may check only store_commit's result. The store stays usable. After
 * ERR_NO_SPACE, repeat the turn's writes once there is room. Reads see the turn's own
 * uncommitted writes. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct buf;
struct err;
struct store;

/* Opens dir/berth.db; dir must exist. Creates the file if it is missing. A file that is
 * unreadable, damaged or from a newer Berth is refused and left unchanged, and e says what to
 * do. */
int store_open(const char *dir, struct store **out, struct err *e);
/* Rolls back uncommitted writes, marks a clean shutdown and releases everything. NULL is
 * fine. */
void store_close(struct store *s);

int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);
bool store_has_changes(const struct store *s); /* a commit would write */

/* Moves the write-ahead log into the database. Call it when idle: otherwise store_commit does
 * so once the log has grown to 4 MiB. No-op when the log is empty. */
int store_checkpoint(struct store *s, struct err *e);
/* As store_checkpoint, and truncates the log file to free disk space, for when the disk is
 * full. */
int store_shrink_log(struct store *s, struct err *e);
/* True if most of the file is unused and the used part is small; then store_compact gives the
 * space back. Opening the store compacts larger files too. */
bool store_is_mostly_free(struct store *s);
int store_compact(struct store *s, struct err *e);
bool store_wants_checkpoint(const struct store *s); /* the log is not empty */
int64_t store_bytes(const struct store *s);         /* on disk, including the log */
int64_t store_used_bytes(struct store *s); /* store_bytes less free pages in the file */
/* Checks the whole file for damage: slow. store_open does this after an unclean shutdown. */
int store_check(struct store *s, struct err *e);

/* 1 MiB held in reserve (dir/reserve), so that outcomes can be written when the disk is full.
 * Opening the store creates it. release frees it and returns true if it existed; restore
 * creates it again once there is room. */
bool store_reserve_release(struct store *s);
int store_reserve_restore(struct store *s, struct err *e);

/* --- the instance --- */

const char *store_token(const struct store *s); /* 16 hex digits, created with the file */
/* The boot id under which recovery last completed; "" at first. Set it in the transaction that
 * holds the results of the recovery. */
const char *store_boot_id(const struct store *s);
int store_boot_id_set(struct store *s, const char *boot_id, struct err *e);
/* Never reused, whatever is rolled back or removed. */
uint32_t store_next_job_id(struct store *s);
uint64_t store_next_order(struct store *s);
/* For a plan that numbers tasks as it starts them: peek returns the next job id, and advance
 * records that all ids below `next` have been used. */
uint32_t store_peek_job_id(const struct store *s);
void store_advance_job_id(struct store *s, uint32_t next);

/* A short text under a key of the caller's choice, such as "gpu:UUID"; put replaces. get: the
 * caller frees; NULL if there is none. */
int store_note_put(struct store *s, const char *key, const char *text, struct err *e);
char *store_note_get(struct store *s, const char *key);

/* The answer to a user's request with this token; the caller frees, NULL if not known. put:
 * call it in the transaction of the changes that the answer reports. The newest 256 answers of
 * each user are kept, fewer large ones. */
char *store_answer_get(struct store *s, uint32_t uid, const char *token);
int store_answer_put(struct store *s, uint32_t uid, const char *token, const char *json,
                     struct err *e);

/* The work that a user's long request with this token has done so far, in pieces numbered from
 * 0. add: call it in the transaction of that piece. get: the caller frees, NULL if there is no
 * such piece. trim: removes pieces older than before_us, whose request no client has
 * repeated. */
struct store_piece {
    int number;
    int64_t at_us;
    const char *text;
};
int store_progress_add(struct store *s, uint32_t uid, const char *token,
                       const struct store_piece *piece, struct err *e);
char *store_progress_get(struct store *s, uint32_t uid, const char *token, int number);
int store_progress_drop(struct store *s, uint32_t uid, const char *token, struct err *e);
int store_progress_trim(struct store *s, int64_t before_us, struct err *e);

/* --- jobs --- */

/* An attempt with the UUIDs of its GPUs: uuids[i] belongs to attempt.gpus[i]. now_mib is not
 * stored and reads as -1. */
struct store_attempt {
    struct attempt attempt;
    char *uuids[GPU_MAX]; /* owned */
};
void store_attempts_free(struct store_attempt *attempts, int n); /* and the array */

/* These write every durable field of the job except its run, which the attempt functions
 * write. Insert needs an id from store_next_job_id. Update writes all fields that may change:
 * not id, uid, submitted_us, file and key. */
int store_job_insert(struct store *s, const struct job *job, struct err *e);
int store_job_update(struct store *s, const struct job *job, struct err *e);

/* uuids has attempt->n_gpus entries. Insert replaces an attempt with the same number. Update
 * writes everything except the GPUs. */
int store_attempt_insert(struct store *s, uint32_t job, const struct attempt *attempt,
                         const char *const *uuids, struct err *e);
int store_attempt_update(struct store *s, uint32_t job, const struct attempt *attempt,
                         struct err *e);

/* The job with its last attempt as run; the caller frees it with job_free. NULL with
 * ERR_NO_JOB if there is no such job. */
struct job *store_job_load(struct store *s, uint32_t id, struct err *e);
/* All attempts of a job in order; the caller frees *out with store_attempts_free. Returns the
 * count, or -1. */
int store_attempts_load(struct store *s, uint32_t job, struct store_attempt **out,
                        struct err *e);

/* Called for each job found. uuids are those of job->run's GPUs (NULL without a run), borrowed
 * for the call. A non-zero return ends the walk, without an error. The callback may read the
 * store. */
typedef int (*store_job_cb)(struct job *job, const char *const *uuids, void *arg);

/* Every job that has not ended, by id; the callback takes ownership of each job. */
int store_jobs_load_live(struct store *s, store_job_cb cb, void *arg, struct err *e);

struct store_range {
    uint32_t first, last; /* both included */
};

/* All conditions must hold. Zero-initialised, it selects every job, oldest first. */
struct store_filter {
    const struct store_range *ranges; /* job ids in any of these ranges */
    int n_ranges;                     /* 0: all ids */
    uint32_t states;                  /* 1U << JOB_FAILED | ...; 0: any */
    uint32_t uid;                     /* with has_uid */
    bool has_uid;
    uint32_t file;    /* 0: any jobs file */
    int64_t since_us; /* ended then or later; 0: no condition */
    int64_t until_us; /* ended before; 0: no condition */
    /* Lower-case text that the name, command or tags must contain, ignoring case; NULL: no
     * search. With has_search_uid, only jobs of search_uid can match. Searches return the
     * newest job first. */
    const char *search;
    uint32_t search_uid;
    bool has_search_uid;
    bool newest_first;
    int64_t limit; /* at most this many jobs, in newest-first order; 0: no limit */
};

/* Walks the matching jobs by id, one at a time; each job is borrowed for the call. */
int store_jobs_select(struct store *s, const struct store_filter *filter, store_job_cb cb,
                      void *arg, struct err *e);
/* Bounds and progress of one pass of such a walk. */
struct store_pass {
    int64_t stop_us; /* boot clock: stop after the current job from then on */
    uint32_t last;   /* the last job examined, which need not contain `search` */
    bool stopped;    /* by cb or the deadline, after `last`; else all jobs were examined */
};
#define STORE_PASS_ALL                                                                         \
    {                                                                                          \
        .stop_us = INT64_MAX                                                                   \
    }
/* As store_jobs_select, in passes: each pass examines at least one job. */
int store_jobs_pass(struct store *s, const struct store_filter *filter, struct store_pass *pass,
                    store_job_cb cb, void *arg, struct err *e);

/* The following look up one committed job. */

/* The newest job of this user with this fingerprint that has not ended or has COMPLETED (array
 * tasks excluded). */
int store_find_same(struct store *s, uint32_t uid, const char *fingerprint,
                    struct found_job *out, struct err *e);
/* The newest job of this user with this name (array tasks excluded). */
int store_find_named(struct store *s, uint32_t uid, const char *name, struct found_job *out,
                     struct err *e);
/* The newest job of this user (array tasks excluded). */
int store_find_newest(struct store *s, uint32_t uid, struct found_job *out, struct err *e);
/* The job that this task of the array became when it started. */
int store_find_task(struct store *s, uint32_t array, int32_t task, struct found_job *out,
                    struct err *e);
/* The job with this id, without its command, which may be megabytes long. */
int store_find_job(struct store *s, uint32_t id, struct found_job *out, struct err *e);
/* All task numbers of an array, into an empty set that the caller frees; empty if the job is
 * not an array. */
int store_array_tasks(struct store *s, uint32_t id, struct task_set *out, struct err *e);
/* The tasks first..last that have a job of their own, by task number. A non-zero return from
 * cb ends the walk. */
typedef int (*store_task_cb)(uint32_t id, int32_t task, enum job_state state, void *arg);
int store_tasks_walk(struct store *s, uint32_t array, int32_t first, int32_t last,
                     store_task_cb cb, void *arg, struct err *e);

/* --- the past, for reports --- */

/* Position of a walk backwards in time: it continues with what ended before this. */
struct store_place {
    int64_t at_us;
    uint32_t job;
    int32_t number;
};
#define STORE_PLACE_NOW                                                                        \
    {                                                                                          \
        INT64_MAX, UINT32_MAX, INT32_MAX                                                       \
    }

/* An ended job and the totals of its attempts. Arrays are left out; their tasks are
 * included. */
struct store_ended {
    uint32_t id, uid;
    char user[64]; /* the user's name at submission, perhaps truncated; "": not known */
    enum job_state state;
    int64_t submitted_us, begin_us, ended_us; /* begin_us: as requested; 0: none */
    int32_t gpus, declared_mib;
    bool never; /* INFEASIBLE, or CANCELLED because of a dependency */
    char fingerprint[20];
    int32_t attempts;
    int64_t started_us;     /* of the first attempt that started; 0: the job never ran */
    int64_t run_ms, gpu_ms; /* of all attempts; gpu_ms: run time times GPUs */
    int64_t util_sum, util_count;
    /* The last attempt: */
    int64_t last_run_ms;
    int32_t n_cards, vram_mib, peak_mib; /* -1: never attributed */
    enum outcome outcome;
    int32_t code, signal;
    enum oom_kind oom;
};
typedef void (*store_ended_cb)(const struct store_ended *x, void *arg);

/* The next jobs, at most max, that ended at since_us or later. Returns the count, or -1. */
int store_ended_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                     store_ended_cb cb, void *arg, struct err *e);

/* One attempt's time on its GPUs. Borrowed for the call. */
struct store_used {
    uint32_t job, uid;
    const char *user; /* at submission; NULL: not known */
    int32_t share_permille;
    const struct attempt *attempt; /* only GPUs, peaks, vram, started and ended are filled */
    const char *const *uuids;
};
typedef void (*store_used_cb)(const struct store_used *x, void *arg);

/* As store_ended_walk, for attempts on GPUs, ordered by the end of the attempt. */
int store_used_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                    store_used_cb cb, void *arg, struct err *e);

/* The earliest start of any attempt that has ended; 0: none has ended. */
int store_past_begin(struct store *s, int64_t *at_us, struct err *e);

/* --- runs of the same command --- */

/* The last two completed runs of one user's command. */
struct store_runs {
    uint32_t uid;
    const char *fingerprint;    /* borrowed */
    int64_t last_ms, before_ms; /* before_ms 0: there was only one run */
    int64_t ended_us;           /* when the last run ended */
};
typedef void (*store_runs_cb)(const struct store_runs *r, void *arg);

int store_runs_put(struct store *s, const struct store_runs *r, struct err *e); /* or replace */
/* Every row, newest first, at most 100,000. */
int store_runs_load(struct store *s, store_runs_cb cb, void *arg, struct err *e);
int store_runs_trim(struct store *s, struct err *e); /* removes the rows that load would skip */

/* --- the memory of the same command --- */

struct learned;
struct store_peaks_key {
    uint32_t uid;
    const char *fingerprint; /* borrowed */
    int32_t gpus;            /* number of GPUs of a run */
};
/* What is known (core/learn/demands.h); all zero if no such run has ended. */
int store_peaks_get(struct store *s, const struct store_peaks_key *key, struct learned *out,
                    struct err *e);
int store_peaks_put(struct store *s, const struct store_peaks_key *key, const struct learned *l,
                    int64_t ended_us, struct err *e);
int store_peaks_trim(struct store *s, struct err *e); /* keeps the newest 100,000 */

/* --- environments --- */

/* Stores the bytes, once for all equal ones, and sets *id (never 0). */
int store_env_put(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e);
/* The id of these bytes if they are stored already; 0: they are not. */
int store_env_find(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e);
int store_env_get(struct store *s, int64_t id, struct buf *out,
                  struct err *e); /* replaces out */

/* --- jobs files --- */

/* The id of this user's jobs file; 0: there is none. */
int store_file_find(struct store *s, uint32_t uid, const char *path, uint32_t *id,
                    struct err *e);
/* As store_file_find, but creates a missing row (*id is never 0). */
int store_file_id(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e);
/* Size of the environment with this id; 0 if the id is not known. */
int64_t store_env_bytes(struct store *s, int64_t id);
/* The path of a jobs file; the caller frees it. NULL with e filled if there is no such
 * file. */
char *store_file_path(struct store *s, uint32_t file, struct err *e);

/* The outcome of a line of a jobs file. */
struct store_key {
    const char *key; /* borrowed for the call */
    uint32_t job;
    int32_t line;
    enum job_state state;
    enum outcome outcome; /* of the last attempt, as are code and signal */
    int32_t code;
    int32_t signal;
};
typedef int (*store_key_cb)(const struct store_key *key, void *arg);

/* Position of a walk over a file's keys; all zero at the start. */
struct store_keys_at {
    char key[64]; /* the last key among pruned jobs */
    bool in_jobs; /* the pruned jobs are done */
    uint32_t job; /* the last of the other jobs */
};

/* Every job from this file that still counts: pruned ones first, then the others by id; if a
 * key occurs twice, the later job counts. A non-zero return from cb stops the walk after that
 * key, and the next call continues there; nothing may be pruned in between. 1: stopped, 0: all
 * jobs were passed, -1 with e. */
int store_file_keys(struct store *s, uint32_t file, struct store_keys_at *at, store_key_cb cb,
                    void *arg, struct err *e);
/* --fresh: the file's ended jobs no longer count for their lines. They stay in the history,
 * with their file. Examines at most `most` jobs after *at, which is 0 at first and is then set
 * to the last job examined. 1: there may be more, 0: all are done, -1 with e. */
int store_file_forget(struct store *s, uint32_t file, uint32_t *at, int most, struct err *e);
/* As store_file_forget for one job, ended or not. */
int store_job_detach(struct store *s, uint32_t id, struct err *e);
/* Approximate bytes stored for this user's jobs files and the lines of pruned jobs; the second
 * function sums all users. -1 with e. */
int64_t store_kept_bytes(struct store *s, uint32_t uid, struct err *e);
int64_t store_kept_bytes_of_all(struct store *s, struct err *e);
/* A user whose stored bytes exceed this, or STORE_NOBODY; -1 with e. */
#define STORE_NOBODY (INT64_MAX)
int64_t store_kept_above(struct store *s, int64_t bytes, struct err *e);

/* --- pruning --- */

/* Removes at most max ended jobs, with their attempts, that ended before before_us or have an
 * id below below_id. Outcomes that a jobs file still needs stay, and so do tasks of an array
 * that has not ended. Returns the count, or -1. Call it when no other turn is open, and commit
 * afterwards. */
int store_prune(struct store *s, int64_t before_us, uint32_t below_id, int max, struct err *e);
/* The user whose ended jobs take the most space, estimated from a sample. 1; 0: there are no
 * such jobs; -1. */
int store_largest_user(struct store *s, uint32_t *uid, struct err *e);
/* As store_prune, for one user's jobs of any age, oldest first, after *at, which is 0 at
 * first. Examines a bounded number of jobs and sets *at to where the next call continues; 0:
 * all were examined. */
int store_prune_user(struct store *s, uint32_t uid, uint32_t *at, int max, struct err *e);
/* Removes this user's jobs files that no job and no line refers to, except the newest file, so
 * that no number is ever reused. Examines at most `most` files after *at, as above. Returns
 * the count, or -1. */
int store_prune_files(struct store *s, uint32_t uid, uint32_t *at, int most, struct err *e);
/* Removes environments that no job refers to. Examines at most `most` of them after *at, as
 * above, and removes at most some MiB. Returns the count, or -1. */
int store_prune_envs(struct store *s, int64_t *at, int most, struct err *e);

/* --- usage of users --- */

/* As struct fair has it: decayed GPU-seconds as of at_us. */
int store_usage_set(struct store *s, uint32_t uid, double gpu_seconds, int64_t at_us,
                    struct err *e);
typedef void (*store_usage_cb)(uint32_t uid, double gpu_seconds, int64_t at_us, void *arg);
int store_usage_load(struct store *s, store_usage_cb cb, void *arg, struct err *e);

/* --- over time --- */

/* Encoded usage over time of an attempt (core/learn/trace.h) and of a GPU
 * (core/learn/series.h); put replaces. get replaces the content of out: 1, or 0 if there is
 * none, or -1. */
int store_trace_put(struct store *s, uint32_t job, int32_t attempt, const void *bytes, size_t n,
                    struct err *e);
int store_trace_get(struct store *s, uint32_t job, int32_t attempt, struct buf *out,
                    struct err *e);
int store_series_put(struct store *s, const char *uuid, const void *bytes, size_t n,
                     struct err *e);
int store_series_get(struct store *s, const char *uuid, struct buf *out, struct err *e);

/* GPU time of all ended attempts of this user, including pruned ones. */
int store_total_put(struct store *s, uint32_t uid, int64_t gpu_ms, struct err *e);
typedef void (*store_total_cb)(uint32_t uid, int64_t gpu_ms, void *arg);
int store_totals_load(struct store *s, store_total_cb cb, void *arg, struct err *e);

/* --- the outbox --- */

/* A pending notification of a job (daemon/outbox/outbox_fill.h). Texts are borrowed. */
struct store_letter {
    int64_t id; /* set by store_outbox_add; never reused */
    uint32_t job, uid;
    const char *kind, *target, *event; /* event: the whole object, as followers receive it */
    int tries;                         /* failed attempts at delivery */
    bool site;                         /* requested by the settings, not by the job */
};
typedef int (*store_letter_cb)(const struct store_letter *letter, void *arg);

int store_outbox_add(struct store *s, struct store_letter *letter, struct err *e);
int store_outbox_tried(struct store *s, int64_t id, int tries, struct err *e);
int store_outbox_remove(struct store *s, int64_t id, struct err *e);
/* Letters with ids in from..to, both included, in order. A non-zero return from cb ends the
 * walk. */
int store_outbox_walk(struct store *s, int64_t from, int64_t to, store_letter_cb cb, void *arg,
                      struct err *e);

/* --- events --- */

struct store_event {
    int64_t seq; /* 1, 2, ...: set by store_event_add */
    int64_t at_us;
    const char *kind;
    uint32_t job;     /* 0: none */
    uint32_t file;    /* 0: none */
    const char *json; /* json_len bytes, NUL-terminated when read */
    size_t json_len;
};
typedef int (*store_event_cb)(const struct store_event *event, void *arg);

int store_event_add(struct store *s, struct store_event *event, struct err *e);
int64_t
store_event_last(const struct store *s); /* seq of the newest, committed or not; 0: none */

int64_t store_event_first(struct store *s); /* seq of the oldest event kept; 0: none */
/* The seq just before the first event at this time or later: pass it as `since`. */
int64_t store_event_before(struct store *s, int64_t at_us);

/* Events with seq > since, oldest first. A non-zero return from cb ends the walk. */
int store_events_read(struct store *s, int64_t since, store_event_cb cb, void *arg,
                      struct err *e);
/* Removes the oldest events, at most `most` and none of the newest `keep` (at least 1).
 * Numbers are never reused. 1: there are more to remove; 0; -1. */
int store_events_trim(struct store *s, int64_t keep, int most, struct err *e);

#endif
