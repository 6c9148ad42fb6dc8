/* What cards and running attempts used over time, gathered from the samples that are taken
 * anyway. Of cards the minutes are kept when the daemon leaves in order; of an attempt what
 * there is whenever its step has doubled, and all of it with its end. A daemon that is killed
 * loses what came after that. */
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

/* The ledger has a new sample of the card; the job's attempt has its part of it. */
void telemetry_card(struct cards *cards, int card);
void telemetry_job(struct cards *cards, struct job *job);

/* Within the transaction: what is to be written of the attempt. settled: it is over. */
void telemetry_write(struct cards *cards, const struct job *job, bool settled);
/* That has been committed. */
void telemetry_written(struct cards *cards, uint32_t job, bool settled);

/* On the way out: everything that is worth keeping, in a transaction of its own. */
int telemetry_save(struct cards *cards, struct err *e);

/* Borrowed; NULL when there is none. */
const struct series *telemetry_series(const struct cards *cards, int card);
const struct trace *telemetry_trace(const struct cards *cards, uint32_t job, int32_t attempt);

/* The card's number is about to be another's: what was recorded is kept under its UUID. */
void telemetry_forget_card(struct cards *cards, int card);

#endif
