/* Run times of a command: the last two completed runs of every fingerprint, and the live jobs
 * with that fingerprint. A job's expectation follows from them: its estimate, the mean of the
 * two, and its span, which the scheduler plans with. A span is an expectation; no job is
 * stopped because of it. Pure; the daemon's estimates.c loads and saves the rows. */
#ifndef CORE_LEARN_RUNTIMES_H
#define CORE_LEARN_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

struct history;
struct job;

struct history *history_new(void);
void history_free(struct history *h); /* NULL is fine; does not free the jobs */

/* The last two completed runs; 0: none. */
struct runs {
    int64_t last_ms, before_ms;
};
void history_restore(struct history *h, uint32_t uid, const char *fingerprint, struct runs r);
/* The job, which has a fingerprint, completed once more in run_ms. Returns the last two runs
 * now. */
struct runs history_note(struct history *h, const struct job *job, int64_t run_ms);
struct runs history_runs(const struct history *h, const struct job *job);

/* Adds a job and sets its estimate and span; it stays until history_leave. A job without a
 * fingerprint is not kept, but gets its span too. */
void history_enter(struct history *h, struct job *job);
void history_leave(struct history *h, struct job *job); /* no-op if it was not added */
/* The first live job with this job's fingerprint; continue with job->same_next. NULL: none. */
struct job *history_first(const struct history *h, const struct job *job);

/* The next live job whose expectation may have changed since history_note, once for each note;
 * NULL: no more. */
struct job *history_next(struct history *h);
bool history_has_next(const struct history *h); /* true although there may be none left */

/* Updates estimate_ms and span_ms. True if the span changed: then refile the job. */
bool history_expect(const struct history *h, struct job *job);

/* The estimate rounded up to one of few values: 1 s, 1.25 s, and so on by quarters. Jobs share
 * a line if their spans are equal, so there must not be one for every millisecond. */
int64_t span_class(int64_t estimate_ms);

#endif
