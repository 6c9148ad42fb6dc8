/* Consequences of an attempt's end: declared against measured VRAM, the next demand after a
 * CUDA OOM, the backoff before a retry, exit status and sentences. Integer arithmetic only, so
 * the same facts give the same numbers everywhere. */
#ifndef CORE_QUEUE_ENDINGS_H
#define CORE_QUEUE_ENDINGS_H

#include <stdint.h>

#include "core/queue/job.h"

struct buf;

#define RETRY_BACKOFF_FIRST_US (5 * INT64_C(1000000))
#define RETRY_BACKOFF_MAX_US   (300 * INT64_C(1000000))

/* Named after what was wrong with the declaration. */
enum verdict {
    VERDICT_NONE,         /* nothing was declared */
    VERDICT_WITHIN,       /* within the tolerance */
    VERDICT_UNDER,        /* under-declared: it used more than it said */
    VERDICT_OVER,         /* over-declared: it used less */
    VERDICT_UNATTRIBUTED, /* its memory was never measured */
};

const char *verdict_name(enum verdict v); /* "within"; NULL for NONE */
enum verdict account_verdict(int32_t declared_mib, int32_t peak_mib,
                             int32_t tolerance_permille);
/* (peak - declared) in per cent of declared, rounded half away from zero; declared > 0. */
int32_t account_percent(int32_t declared_mib, int32_t peak_mib);
int32_t attempt_peak_mib(const struct attempt *a); /* largest on any card; -1: none */
int32_t attempt_util(const struct attempt *a);     /* average load in per cent; -1: none */

/* ceil(1.25 * max(peak, demand)), at most VRAM_MAX_MIB; 0 if neither is known (> 0). */
int32_t account_oom_next_mib(int32_t peak_mib, int32_t demand_mib);

/* Backoff before this retry (1, 2, ...): 5 s, doubling to 5 min. */
int64_t account_backoff_us(int32_t retry);

#define STATUS_CANCELLED 130

/* As a shell would report it: code, 128+signal, 124 time limit, 130 cancelled, 126/127 could
 * not be executed (EACCES, EPERM, ENOEXEC / ENOENT, ENOTDIR), else 1. -1: not ended. */
int32_t job_exit_status(const struct job *job);

/* How an attempt or a job ended, in words: "exit 3", "killed by signal 9 (KILL)", "time limit
 * of 2h00m", "CUDA out of memory: ..." Appended. */
void ending_text(const struct ending *e, struct buf *out);
void attempt_end_text(const struct attempt *run, struct buf *out); /* with its figures */
void job_end_text(const struct job *job, struct buf *out);

/* For an attempt whose command was not started; errnum: why, 0 if unknown. */
struct ending ending_never_ran(int32_t errnum, int64_t at_us);

/* The state of a job that ends this way and is not retried. */
enum job_state ending_state(const struct ending *e);

#endif
