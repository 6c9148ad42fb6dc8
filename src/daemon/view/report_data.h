/* A report in progress: ended jobs summed up by user, command and cause, and the use of the
 * GPUs over time. method_report.c feeds it from the store piece by piece, report_sum.c and
 * report_cards.c add up, report_advice.c derives suggestions, report_json.c writes it. The
 * constants below bound the memory however long the history is. */
#ifndef DAEMON_VIEW_REPORT_DATA_H
#define DAEMON_VIEW_REPORT_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "core/learn/spread.h"
#include "core/queue/endings.h"
#include "core/queue/job.h"
#include "store/store.h"

struct buf;
struct client;
struct instance;
struct jsonw;

#define REPORT_COMMANDS_MAX 20000 /* distinct; jobs of further ones are counted together */
#define REPORT_CAUSES_MAX   128
#define REPORT_BINS_MAX     500
#define REPORT_POINTS_MAX   5000
#define REPORT_WAIT_CLASSES 8

/* Parts of the answer, as named by the param `by`. */
enum report_part {
    REPORT_USERS = 1,
    REPORT_COMMANDS = 2,
    REPORT_CAUSES = 4,
    REPORT_GPUS = 8,
    REPORT_WAITS = 16,
    REPORT_SCATTER = 32,
    REPORT_ADVICE = 64,
};

/* Sums over a set of jobs. */
struct report_sums {
    int64_t jobs, ran, states[JOB_STATES];
    int64_t run_ms, gpu_ms;
    struct spread waits;                        /* ms, of jobs that ran */
    struct spread peaks;                        /* MiB, of completed jobs */
    int64_t verdicts[VERDICT_UNATTRIBUTED + 1]; /* of completed GPU jobs */
    int64_t wasted_mib_ms; /* requested and never used, of completed jobs */
    int64_t util_sum, util_count;
    int64_t gpu_jobs;                   /* completed GPU jobs */
    int32_t asked_mib, asked_least_mib; /* VRAM declared: by the newest, the least; 0: none */
    int64_t oom_jobs;
    /* Of the jobs that ran out of GPU memory, the one that needs most: its demand, its peak
     * (-1: unknown), and what its next attempt would need. 0: none declared VRAM. */
    int32_t oom_mib, oom_peak_mib, oom_next_mib;
};

struct report_user {
    uint32_t uid;
    struct report_sums sums;
    UT_hash_handle hh;
};

struct report_command_key {
    uint32_t uid;
    char fingerprint[20];
};

struct report_command {
    struct report_command_key key;
    uint32_t newest; /* the newest job with it */
    int32_t gpus;    /* GPUs that the newest requested */
    struct report_sums sums;
    UT_hash_handle hh;
};

enum report_cause {
    CAUSE_EXIT,   /* number: exit code */
    CAUSE_SIGNAL, /* number: signal */
    CAUSE_TIMEOUT,
    CAUSE_CUDA_OOM,
    CAUSE_HOST_OOM,
    CAUSE_NOT_STARTED,
    CAUSE_LOST,
    CAUSE_CANCELLED,
    CAUSE_DEPENDENCY,
    CAUSE_INFEASIBLE,
    CAUSE_PREEMPTED,
    CAUSE_EXCEEDED,
};

struct report_failure {
    enum report_cause cause;
    int32_t number;
    uint32_t newest;
    int64_t jobs, gpu_ms;
};

struct report_bin {
    double busy_us; /* time for which a job held the GPU */
    double asked;   /* requested MiB x us; a whole GPU counts with its size */
    double used;    /* peak MiB x us, where known */
};

struct report_card {
    char uuid[80];
    int32_t index;
    bool gone;         /* no longer in the machine */
    int64_t total_mib; /* 0: unknown */
    int64_t low_us;    /* earliest start so far: see report_cards.c */
    int64_t busy_us, runs;
    struct report_bin *bins; /* owned */
};

struct report_wait_bin {
    int64_t jobs, sum_ms, max_ms;
};

struct report {
    const struct instance *inst;
    uid_t uid; /* the caller's */
    bool admin;
    unsigned parts;
    char *user; /* owned; only this user's jobs; NULL: all */
    int64_t since_us, until_us;
    int64_t from_us; /* start of the time axis */
    int bins, points, commands_shown;

    struct report_sums total;
    struct report_user *users;       /* uthash */
    struct report_command *commands; /* uthash */
    int64_t commands_left_out;       /* number of jobs */
    struct report_failure failures[REPORT_CAUSES_MAX];
    int n_failures;
    int64_t failures_left_out;
    struct report_card *cards;
    int n_cards;
    struct report_wait_bin wait_bins[REPORT_BINS_MAX];
    int64_t wait_classes[REPORT_WAIT_CLASSES];
    struct report_point {
        int32_t asked_mib, peak_mib;
        uint32_t job, uid;
    } * scatter; /* owned */
    int n_scatter;
};

/* Upper bounds of the classes of waits; the last class has none. */
extern const int64_t report_wait_ms[REPORT_WAIT_CLASSES - 1];

bool report_is_hidden(const struct report *r, uint32_t owner);
/* True if a job of this user belongs in the report. user: the name stored with the job. */
bool report_counts(const struct report *r, uint32_t uid, const char *user);
int64_t report_bin_us(const struct report *r); /* width of a bin; at least 1 */

/* report_sum.c. Add the newest first. */
void report_add_ended(struct report *r, const struct store_ended *x);
void report_free(struct report *r); /* frees what it owns */

/* report_cards.c. Call before anything is added: enters the machine's GPUs and the running
 * jobs. */
void report_cards_begin(struct report *r);
/* Add in descending order of end times. */
void report_add_used(struct report *r, const struct store_used *x);

/* report_advice.c: writes the suggestions as a list of objects. */
void report_write_advice(const struct report *r, const struct report_command *const *commands,
                         int n, struct jsonw *w);

/* report_json.c */
void report_write(struct report *r, struct buf *out);
/* Writes the command of a job as one line, shortened; nothing if the caller may not see it. */
void report_command_text(const struct report *r, const struct report_command *c,
                         struct buf *out);

#endif
