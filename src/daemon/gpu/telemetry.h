/* The use of GPUs and of running attempts over time, gathered from the samples taken anyway.
 * The minutes of GPUs are stored when the daemon exits in order; an attempt's trace is stored
 * whenever its step has doubled, and completely at its end. A daemon that is killed loses what
 * came after that. */
#ifndef DAEMON_GPU_TELEMETRY_H
#define DAEMON_GPU_TELEMETRY_H

#include <stdbool.h>
#include <stdint.h>

struct cards;
struct err;
struct job;
struct series;
struct telemetry;
struct trace;

struct telemetry *telemetry_new(void);
void telemetry_free(struct telemetry *t);

/* telemetry_card: call when the ledger has a new sample of the GPU. telemetry_job: when the
 * job's attempt has been updated from it. */
void telemetry_card(struct cards *cards, int card);
void telemetry_job(struct cards *cards, struct job *job);

/* Within the transaction: writes what is pending of the attempt. settled: the attempt is
 * over. */
void telemetry_write(struct cards *cards, const struct job *job, bool settled);
/* Call once that has been committed. */
void telemetry_written(struct cards *cards, uint32_t job, bool settled);

/* At exit: stores everything worth keeping in a transaction of its own. */
int telemetry_save(struct cards *cards, struct err *e);

/* Borrowed; NULL: none. */
const struct series *telemetry_series(const struct cards *cards, int card);
const struct trace *telemetry_trace(const struct cards *cards, uint32_t job, int32_t attempt);

/* The GPU's number is about to be reused: stores its record under its UUID. */
void telemetry_forget_card(struct cards *cards, int card);

#endif
