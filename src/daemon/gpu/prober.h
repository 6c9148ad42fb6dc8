/* The probe process: started, asked, watched, replaced; what it reports goes into the
 * ledger. A probe that hangs or dies makes the cards "unknown since", which holds new GPU
 * work and nothing else. */
#ifndef DAEMON_GPU_PROBER_H
#define DAEMON_GPU_PROBER_H

#include <stdbool.h>
#include <stdint.h>

struct cards;
struct err;
struct prober;

/* How to read the GPUs: sim_spec NULL takes the machine's own. */
struct prober *prober_new(struct cards *cards, const char *sim_spec);
void prober_close(struct prober *p); /* ends the probe, closes the handles */
void prober_free(struct prober *p);

/* Starts the probe and runs the loop until it has said which cards there are, said why it
 * cannot, or deadline_ms is over. 0 with the cards in the ledger; -1 with its words. */
int prober_start(struct prober *p, int64_t deadline_ms, struct err *e);

/* Wants a sample from now or later, as soon as can be. */
void prober_request(struct prober *p);

/* A job starts: the next samples come soon. */
void prober_hurry(struct prober *p);

/* What was sampled so far does not count: whose processes are whose is known only now. */
void prober_forget(struct prober *p);

/* Whether the newest sample is young enough to place jobs by. If not, one is asked for and
 * a turn follows it; while a probe is slow beyond patience the cards count as unknown and
 * this is true, so that work without GPUs goes on. */
bool prober_is_fresh(struct prober *p);

const char *prober_backend(const struct prober *p); /* "nvml", "sim", ...; NULL: none yet */
const char *prober_driver(const struct prober *p);  /* NULL: not said */
int64_t prober_unknown_since_us(const struct prober *p); /* wall clock; 0: all is well */
const char *prober_error(const struct prober *p);        /* its last words; NULL */
/* Whether the driver's errors are seen; where not, a broken card shows only by its absence. */
bool prober_reads_log(const struct prober *p);
int64_t prober_restarts(const struct prober *p);   /* how often one had to be replaced */
int64_t prober_sampled_us(const struct prober *p); /* boot clock; 0: not yet */

#endif
