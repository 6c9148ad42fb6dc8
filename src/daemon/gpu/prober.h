/* Starts, queries, supervises and replaces the probe process; what it reports goes into the
 * ledger. A probe that hangs or dies makes the GPUs "unknown since", which holds back new GPU
 * work and nothing else. */
#ifndef DAEMON_GPU_PROBER_H
#define DAEMON_GPU_PROBER_H

#include <stdbool.h>
#include <stdint.h>

struct cards;
struct err;
struct prober;

/* sim_spec: simulated GPUs; NULL: the machine's own. */
struct prober *prober_new(struct cards *cards, const char *sim_spec);
void prober_close(struct prober *p); /* ends the probe, closes the handles */
void prober_free(struct prober *p);

/* Starts the probe and runs the loop until it has listed and sampled the GPUs, has reported an
 * error, or deadline_ms is over. 0 with the GPUs in the ledger; -1 with the probe's error. */
int prober_start(struct prober *p, int64_t deadline_ms, struct err *e);

/* Requests a sample taken from now on, as soon as possible. */
void prober_request(struct prober *p);

/* A job starts: takes the next samples soon. */
void prober_hurry(struct prober *p);

/* Discards the newest sample, because the owners of processes are known only now; requests
 * another. */
void prober_forget(struct prober *p);

/* True if the newest sample is recent enough to place jobs. Otherwise one is requested, and a
 * turn follows it; if the probe is too slow, the GPUs count as unknown and this is true, so
 * that work without GPUs continues. */
bool prober_is_fresh(struct prober *p);

const char *prober_backend(const struct prober *p); /* "nvml", "sim", ...; NULL: none yet */
const char *prober_driver(const struct prober *p);  /* NULL: not reported */
int64_t prober_unknown_since_us(const struct prober *p); /* wall clock; 0: GPUs are known */
const char *prober_error(const struct prober *p);        /* its last error; NULL: none */
/* True if the driver's errors in the kernel's log are seen; otherwise a broken GPU shows only
 * by its absence. */
bool prober_reads_log(const struct prober *p);
int64_t prober_restarts(const struct prober *p);   /* number of replaced probes */
int64_t prober_sampled_us(const struct prober *p); /* boot clock; 0: not yet */

#endif
