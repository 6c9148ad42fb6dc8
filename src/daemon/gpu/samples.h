/* A sample's way into the ledger and the jobs: the job of each process, what each job has
 * used, which jobs exceed their VRAM, whose memory is back. */
#ifndef DAEMON_GPU_SAMPLES_H
#define DAEMON_GPU_SAMPLES_H

#include <jansson.h>
#include <stdint.h>

struct cards;
struct instance;

/* One sample, asked for at asked_us (boot clock). */
void sample_take(struct cards *cards, const json_t *sample, int64_t asked_us);

/* The job whose process this is, by its ancestry; 0: none, or the process is gone. */
uint32_t sample_job_of_pid(const struct cards *cards, int32_t pid);

/* Logs, stores and publishes that a card has changed its state. by: the user who did it;
 * NULL. */
void sample_card_event(struct instance *inst, int card, const char *state, const char *text,
                       const char *by);

#endif
