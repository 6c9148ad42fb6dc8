/* How long the same command took before: the last two completed runs of every fingerprint, and
 * the live jobs that bear it. What is expected of a job follows: its estimate, the mean of the
 * two, and its span, by which the scheduler looks ahead. A span is an expectation; nothing is
 * ever stopped for it. Pure; the store's rows come and go through the daemon's estimates.c. */
#ifndef CORE_LEARN_RUNTIMES_H
#define CORE_LEARN_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

struct history;
struct job;

struct history *history_new(void);
void history_free(struct history *h); /* NULL is fine; the jobs are not its own */

/* The last two completed runs, 0 where there was none. */
struct runs {
    int64_t last_ms, before_ms;
};
void history_restore(struct history *h, uint32_t uid, const char *fingerprint, struct runs r);
/* The job, which has a fingerprint, completed once more in run_ms. Returns the two last now. */
struct runs history_note(struct history *h, const struct job *job, int64_t run_ms);
struct runs history_runs(const struct history *h, const struct job *job);

/* A job enters with its estimate and span set, and stays until history_leave. One without a
 * fingerprint is not kept, but gets its span all the same. */
void history_enter(struct history *h, struct job *job);
void history_leave(struct history *h, struct job *job); /* one that is not there is fine */
/* The live jobs with the fingerprint of this one: then job->same_next. NULL: none. */
struct job *history_first(const struct history *h, const struct job *job);

/* The live jobs whose expectation may be another since history_note, each once more for each;
 * NULL when there are no more. */
struct job *history_next(struct history *h);
bool history_has_next(const struct history *h); /* it may find that there is none */

/* Sets estimate_ms and span_ms anew. True when the span is another: then refile it. */
bool history_expect(const struct history *h, struct job *job);

/* The estimate rounded up to one of few: 1 s, 1.25 s, and on by quarters. Jobs stand in one
 * line when their spans are equal, so there must not be one for every millisecond. */
int64_t span_class(int64_t estimate_ms);

#endif
