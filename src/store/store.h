/* The durable half of the daemon: one SQLite file, state/berth.db, with every job, attempt,
 * captured environment, jobs file and event. berthd is its only user; one connection, one
 * thread, exclusive.
 *
 * One turn of the daemon is one transaction. The first write opens it, store_commit makes
 * it durable (fsync) and costs nothing when nothing was written. After a failed write every
 * further one of the turn fails the same way and so does store_commit, which then has rolled
 * everything back: so a caller may look at store_commit's result alone. The store stays
 * usable; ERR_NO_SPACE means: try the same turn's writes again when there is room.
 * Reads see the turn's own writes. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct buf;
struct err;
struct store;

/* Opens dir/berth.db; dir must exist. The file is made when there is none; one that is there
 * and cannot be read, is damaged or comes from a newer Berth is refused and left as it is,
 * and e says what to do. */
int store_open(const char *dir, struct store **out, struct err *e);
/* Rolls back what was not committed, marks a clean end, releases everything. NULL is fine. */
void store_close(struct store *s);

int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);
bool store_has_changes(const struct store *s); /* a commit would write */

/* Moves the write-ahead log into the database. For idle moments: without it store_commit does
 * so itself when the log has grown to 4 MiB. Returns at once when there is nothing to do. */
int store_checkpoint(struct store *s, struct err *e);
/* The same, and gives the log's room on the disk back: for a disk that is full. */
int store_shrink_log(struct store *s, struct err *e);
/* Whether most of the file is unused and what is used is little; then compacting gives it
 * back. A start compacts more. */
bool store_is_mostly_free(struct store *s);
int store_compact(struct store *s, struct err *e);
bool store_wants_checkpoint(const struct store *s); /* the log holds something */
int64_t store_bytes(const struct store *s);         /* on the disk, with the log */
int64_t store_used_bytes(struct store *s); /* of them, without what is free in the file */
/* Reads the whole file for damage (store_open does so after an unclean end): slow. */
int store_check(struct store *s, struct err *e);

/* A megabyte put aside (dir/reserve), so that outcomes can be written when the disk is full.
 * Opening makes it; release gives it up, true when it was there; restore makes it again once
 * there is room. */
bool store_reserve_release(struct store *s);
int store_reserve_restore(struct store *s, struct err *e);

/* --- the instance --- */

const char *store_token(const struct store *s); /* 16 hex digits, made with the file */
/* The boot id under which recovery was last completed; "" at first. Set it in the very
 * transaction that holds what recovery found. */
const char *store_boot_id(const struct store *s);
int store_boot_id_set(struct store *s, const char *boot_id, struct err *e);
/* Never given out twice, whatever is rolled back or removed. */
uint32_t store_next_job_id(struct store *s);
uint64_t store_next_order(struct store *s);
/* For a plan that numbers tasks as it starts them: the id that comes next, and that all below
 * `next` have been given out. */
uint32_t store_peek_job_id(const struct store *s);
void store_advance_job_id(struct store *s, uint32_t next);

/* A short text under a key of the caller's own, like "gpu:UUID"; put replaces. get: the caller
 * frees; NULL when there is none. */
int store_note_put(struct store *s, const char *key, const char *text, struct err *e);
char *store_note_get(struct store *s, const char *key);

/* What a user's request with this token was answered; the caller frees, NULL when that is not
 * known. put: in the transaction of what the answer reports. A user's newest 256 are kept,
 * fewer after large ones. */
char *store_answer_get(struct store *s, uint32_t uid, const char *token);
int store_answer_put(struct store *s, uint32_t uid, const char *token, const char *json,
                     struct err *e);

/* What a user's long request with this token has done, in pieces numbered from 0. add: in the
 * transaction of that piece. get: the caller frees, NULL when there is no such piece. trim:
 * those that are older, which no client has asked for again. */
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

/* An attempt with the UUIDs of its cards, uuids[i] that of attempt.gpus[i]. now_mib is not
 * kept: it reads -1. */
struct store_attempt {
    struct attempt attempt;
    char *uuids[GPU_MAX]; /* owned */
};
void store_attempts_free(struct store_attempt *attempts, int n); /* the array too */

/* Every durable field of the job but its run (the attempt functions keep that). Insert wants
 * an id from store_next_job_id; update writes all that may change: not id, uid,
 * submitted_us, file and key. */
int store_job_insert(struct store *s, const struct job *job, struct err *e);
int store_job_update(struct store *s, const struct job *job, struct err *e);

/* uuids: attempt->n_gpus of them. An attempt with that number is replaced. Update keeps the
 * cards and writes everything else. */
int store_attempt_insert(struct store *s, uint32_t job, const struct attempt *attempt,
                         const char *const *uuids, struct err *e);
int store_attempt_update(struct store *s, uint32_t job, const struct attempt *attempt,
                         struct err *e);

/* The job with its last attempt as run; the caller frees it with job_free. NULL with
 * ERR_NO_JOB when there is none. */
struct job *store_job_load(struct store *s, uint32_t id, struct err *e);
/* All attempts of a job in order: *out is the caller's (store_attempts_free). Returns how
 * many, or -1. */
int store_attempts_load(struct store *s, uint32_t job, struct store_attempt **out,
                        struct err *e);

/* Called for each job found. uuids are those of job->run's cards (NULL without a run), borrowed
 * for the call. Not 0 ends the walk, which is then no error. The callee may read the store. */
typedef int (*store_job_cb)(struct job *job, const char *const *uuids, void *arg);

/* Every job that has not ended, by id; the callee owns each job. */
int store_jobs_load_live(struct store *s, store_job_cb cb, void *arg, struct err *e);

struct store_range {
    uint32_t first, last; /* both included */
};

/* All conditions must hold; zero-initialised it selects everything, oldest first. */
struct store_filter {
    const struct store_range *ranges; /* job ids; any of them */
    int n_ranges;                     /* 0: all ids */
    uint32_t states;                  /* 1U << JOB_FAILED | ...; 0: any */
    uint32_t uid;                     /* with has_uid */
    bool has_uid;
    uint32_t file;    /* 0: any */
    int64_t since_us; /* ended then or later; 0: whenever, or not at all */
    int64_t until_us; /* ended before; 0: whenever, or not at all */
    /* In lower case: name, command or tags contain it, in any case of letters; NULL: any. Of
     * other users' than search_uid nothing contains anything, when has_search_uid. What is
     * searched comes newest first. */
    const char *search;
    uint32_t search_uid;
    bool has_search_uid;
    bool newest_first;
    int64_t limit; /* of those that come newest first; 0: no limit */
};

/* Walks the jobs that match, by id, one at a time; each is borrowed for the call. */
int store_jobs_select(struct store *s, const struct store_filter *filter, store_job_cb cb,
                      void *arg, struct err *e);
/* How far such a walk goes, and went. */
struct store_pass {
    int64_t stop_us; /* it ends behind a job when the boot clock says that */
    uint32_t last;   /* the job that was looked at last, which need not contain `search` */
    bool stopped;    /* behind it, by cb or as it was late; else all have been passed */
};
#define STORE_PASS_ALL                                                                         \
    {                                                                                          \
        .stop_us = INT64_MAX                                                                   \
    }
/* The same, for a piece: it looks at one job at least. */
int store_jobs_pass(struct store *s, const struct store_filter *filter, struct store_pass *pass,
                    store_job_cb cb, void *arg, struct err *e);

/* One job is found among those that are committed: */

/* The newest of this user with this fingerprint that has not ended, or has COMPLETED (no task
 * of an array). */
int store_find_same(struct store *s, uint32_t uid, const char *fingerprint,
                    struct found_job *out, struct err *e);
/* The newest of this user with this name (no task of an array). */
int store_find_named(struct store *s, uint32_t uid, const char *name, struct found_job *out,
                     struct err *e);
/* The newest of this user (no task of an array). */
int store_find_newest(struct store *s, uint32_t uid, struct found_job *out, struct err *e);
/* The job that this task of the array became. */
int store_find_task(struct store *s, uint32_t array, int32_t task, struct found_job *out,
                    struct err *e);
/* The job of that number, without its words, of which there may be megabytes. */
int store_find_job(struct store *s, uint32_t id, struct found_job *out, struct err *e);
/* All tasks of an array, into an empty set that the caller frees; none where it is no array. */
int store_array_tasks(struct store *s, uint32_t id, struct task_set *out, struct err *e);
/* The tasks first..last that have left the array, by number. Not 0 from cb ends the walk. */
typedef int (*store_task_cb)(uint32_t id, int32_t task, enum job_state state, void *arg);
int store_tasks_walk(struct store *s, uint32_t array, int32_t first, int32_t last,
                     store_task_cb cb, void *arg, struct err *e);

/* --- the past, for reports --- */

/* How far a walk backwards has come: what ended before that is still to come. */
struct store_place {
    int64_t at_us;
    uint32_t job;
    int32_t number;
};
#define STORE_PLACE_NOW                                                                        \
    {                                                                                          \
        INT64_MAX, UINT32_MAX, INT32_MAX                                                       \
    }

/* An ended job and what its attempts came to. Arrays are not among them, their tasks are. */
struct store_ended {
    uint32_t id, uid;
    char user[64]; /* the user's name at submission, or its beginning; "": not known */
    enum job_state state;
    int64_t submitted_us, begin_us, ended_us; /* begin_us: as asked; 0 */
    int32_t gpus, declared_mib;
    bool never; /* INFEASIBLE, or CANCELLED because of what it waited for */
    char fingerprint[20];
    int32_t attempts;
    int64_t started_us;     /* the first that did; 0: it never ran */
    int64_t run_ms, gpu_ms; /* of all attempts; gpu_ms: times their cards */
    int64_t util_sum, util_count;
    /* of the last attempt */
    int64_t last_run_ms;
    int32_t n_cards, vram_mib, peak_mib; /* -1: never attributed */
    enum outcome outcome;
    int32_t code, signal;
    enum oom_kind oom;
};
typedef void (*store_ended_cb)(const struct store_ended *x, void *arg);

/* The next jobs, at most max, that ended at since_us or later. Returns how many; -1. */
int store_ended_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                     store_ended_cb cb, void *arg, struct err *e);

/* One attempt's time on its cards. Borrowed for the call. */
struct store_used {
    uint32_t job, uid;
    const char *user; /* at submission; NULL: not known */
    int32_t share_permille;
    const struct attempt *attempt; /* cards, peaks, vram, started and ended are filled */
    const char *const *uuids;
};
typedef void (*store_used_cb)(const struct store_used *x, void *arg);

/* The same for attempts on cards, by their own ends. */
int store_used_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                    store_used_cb cb, void *arg, struct err *e);

/* When the attempt that ended first began; 0: none has ended. */
int store_past_begin(struct store *s, int64_t *at_us, struct err *e);

/* --- runs of the same command --- */

/* The last two completed runs of one user's command. */
struct store_runs {
    uint32_t uid;
    const char *fingerprint;    /* borrowed */
    int64_t last_ms, before_ms; /* before_ms 0: there was one only */
    int64_t ended_us;           /* of the last */
};
typedef void (*store_runs_cb)(const struct store_runs *r, void *arg);

int store_runs_put(struct store *s, const struct store_runs *r, struct err *e); /* or replace */
/* Every row, the newest first, at most 100,000. */
int store_runs_load(struct store *s, store_runs_cb cb, void *arg, struct err *e);
int store_runs_trim(struct store *s, struct err *e); /* drops what load would not give */

/* --- the memory of the same command --- */

struct learned;
struct store_peaks_key {
    uint32_t uid;
    const char *fingerprint; /* borrowed */
    int32_t gpus;            /* cards that a run has */
};
/* What is known (core/learn/demands.h); of what has never ended all is zero. */
int store_peaks_get(struct store *s, const struct store_peaks_key *key, struct learned *out,
                    struct err *e);
int store_peaks_put(struct store *s, const struct store_peaks_key *key, const struct learned *l,
                    int64_t ended_us, struct err *e);
int store_peaks_trim(struct store *s, struct err *e); /* keeps the newest 100,000 */

/* --- environments --- */

/* Keeps the bytes, once however often they come, under the id in *id (never 0). */
int store_env_put(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e);
/* The id under which they are kept already; 0: they are not. */
int store_env_find(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e);
int store_env_get(struct store *s, int64_t id, struct buf *out,
                  struct err *e); /* replaces out */

/* --- jobs files --- */

/* The id of this user's file; 0: there is none. */
int store_file_find(struct store *s, uint32_t uid, const char *path, uint32_t *id,
                    struct err *e);
/* The same, made when it is new (never 0). */
int store_file_id(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e);
/* How many there are under this id; 0 where it is not known. */
int64_t store_env_bytes(struct store *s, int64_t id);
/* Its path; the caller frees it. NULL with e filled when there is no such file. */
char *store_file_path(struct store *s, uint32_t file, struct err *e);

/* What became of a line. */
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

/* How far a walk over a file's keys has come; all 0 at its beginning. */
struct store_keys_at {
    char key[64]; /* of the pruned ones the last */
    bool in_jobs; /* those are done */
    uint32_t job; /* of the others the last */
};

/* Every job that came from this file and still counts: those that were pruned, then the others
 * by id; where a key comes twice the later is the one that counts. Not 0 from cb stops behind
 * that key, and the next call goes on from there; nothing may be pruned in between. 1:
 * stopped, 0: all have been passed, -1 with e. */
int store_file_keys(struct store *s, uint32_t file, struct store_keys_at *at, store_key_cb cb,
                    void *arg, struct err *e);
/* --fresh: the file's ended jobs count no more for their lines. They stay in the history, with
 * their file. Looks at so many jobs at most, behind *at, which is 0 at first and then the last
 * that it has looked at. 1: there may be more, 0: that was all, -1 with e. */
int store_file_forget(struct store *s, uint32_t file, uint32_t *at, int most, struct err *e);
/* The same for one job, ended or not. */
int store_job_detach(struct store *s, uint32_t id, struct err *e);
/* Bytes, roughly, that are kept of this user's files and of lines whose jobs were pruned, and
 * of all users'; -1 with e. */
int64_t store_kept_bytes(struct store *s, uint32_t uid, struct err *e);
int64_t store_kept_bytes_of_all(struct store *s, struct err *e);
/* A user with more than that kept, or STORE_NOBODY; -1 with e. */
#define STORE_NOBODY (INT64_MAX)
int64_t store_kept_above(struct store *s, int64_t bytes, struct err *e);

/* --- what goes --- */

/* Removes at most max ended jobs with their attempts: those that ended before before_us, and
 * those with an id below below_id. What a jobs file must know of its lines stays; so do tasks
 * of an array that has not ended. Returns how many, or -1. For a moment in which no other turn
 * is open; to be committed. */
int store_prune(struct store *s, int64_t before_us, uint32_t below_id, int max, struct err *e);
/* Whose ended jobs take most of the database, by a sample. 1; 0: there are none; -1. */
int store_largest_user(struct store *s, uint32_t *uid, struct err *e);
/* As store_prune, of that user and any age, the oldest behind *at, which is 0 at first. Looks
 * at some jobs only; *at says where to go on, 0: those were the last. */
int store_prune_user(struct store *s, uint32_t uid, uint32_t *at, int max, struct err *e);
/* Removes this user's files of which no job and no line is left, but never the newest file, so
 * that no number means two files. Looks at so many files at most, behind *at, as above.
 * Returns how many, or -1. */
int store_prune_files(struct store *s, uint32_t uid, uint32_t *at, int most, struct err *e);
/* Removes environments that no job has any more. Looks at so many at most, and removes some
 * MiB at most, behind *at, as above. Returns how many, or -1. */
int store_prune_envs(struct store *s, int64_t *at, int most, struct err *e);

/* --- what users have used --- */

/* As struct fair keeps it: decayed GPU-seconds as of at_us. */
int store_usage_set(struct store *s, uint32_t uid, double gpu_seconds, int64_t at_us,
                    struct err *e);
typedef void (*store_usage_cb)(uint32_t uid, double gpu_seconds, int64_t at_us, void *arg);
int store_usage_load(struct store *s, store_usage_cb cb, void *arg, struct err *e);

/* --- over time --- */

/* Bytes of an attempt (core/learn/trace.h) and of a card (core/learn/series.h); put replaces.
 * get replaces what is in out: 1, or 0 when there are none, or -1. */
int store_trace_put(struct store *s, uint32_t job, int32_t attempt, const void *bytes, size_t n,
                    struct err *e);
int store_trace_get(struct store *s, uint32_t job, int32_t attempt, struct buf *out,
                    struct err *e);
int store_series_put(struct store *s, const char *uuid, const void *bytes, size_t n,
                     struct err *e);
int store_series_get(struct store *s, const char *uuid, struct buf *out, struct err *e);

/* GPU time of all attempts of this user that have ended, whatever has been pruned since. */
int store_total_put(struct store *s, uint32_t uid, int64_t gpu_ms, struct err *e);
typedef void (*store_total_cb)(uint32_t uid, int64_t gpu_ms, void *arg);
int store_totals_load(struct store *s, store_total_cb cb, void *arg, struct err *e);

/* --- the outbox --- */

/* A hook's news of a job (daemon/outbox/outbox_fill.h). Texts are borrowed. */
struct store_letter {
    int64_t id; /* store_outbox_add fills it in; never given out twice */
    uint32_t job, uid;
    const char *kind, *target, *event; /* event: the whole object, as followers get it */
    int tries;                         /* that failed */
    bool site;                         /* the settings ask for it, and not the job */
};
typedef int (*store_letter_cb)(const struct store_letter *letter, void *arg);

int store_outbox_add(struct store *s, struct store_letter *letter, struct err *e);
int store_outbox_tried(struct store *s, int64_t id, int tries, struct err *e);
int store_outbox_remove(struct store *s, int64_t id, struct err *e);
/* Those with these numbers, both included, in order. Not 0 from cb ends the walk. */
int store_outbox_walk(struct store *s, int64_t from, int64_t to, store_letter_cb cb, void *arg,
                      struct err *e);

/* --- events --- */

struct store_event {
    int64_t seq; /* 1, 2, ...: store_event_add fills it in */
    int64_t at_us;
    const char *kind;
    uint32_t job;     /* 0: none */
    uint32_t file;    /* 0: none */
    const char *json; /* json_len bytes, and a NUL when it was read */
    size_t json_len;
};
typedef int (*store_event_cb)(const struct store_event *event, void *arg);

int store_event_add(struct store *s, struct store_event *event, struct err *e);
int64_t
store_event_last(const struct store *s); /* seq of the newest, committed or not; 0: none */

int64_t store_event_first(struct store *s); /* seq of the oldest that is kept; 0: none */
/* The number before that of the first event at this time or later: what to read on from. */
int64_t store_event_before(struct store *s, int64_t at_us);

/* Events with seq > since, oldest first. Not 0 from cb ends the walk. */
int store_events_read(struct store *s, int64_t since, store_event_cb cb, void *arg,
                      struct err *e);
/* Drops the oldest, so many at most and none of the newest keep (at least 1). Numbers are not
 * used again. 1: there are more to drop; 0; -1. */
int store_events_trim(struct store *s, int64_t keep, int most, struct err *e);

#endif
