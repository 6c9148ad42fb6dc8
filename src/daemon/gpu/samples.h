/* Applies samples to the ledger and the jobs: finds the job of each process, what each job has
 * used, which jobs exceed their VRAM, and whose memory was freed. */
#ifndef DAEMON_GPU_SAMPLES_H
#define DAEMON_GPU_SAMPLES_H

#include <jansson.h>
#include <stdint.h>

struct cards;
struct instance;

/* Applies one sample, requested at asked_us (boot clock). */
void sample_take(struct cards *cards, const json_t *sample, int64_t asked_us);

/* The job that this process belongs to; 0: none, or the process is gone. */
uint32_t sample_job_of_pid(const struct cards *cards, int32_t pid);

/* Logs, stores and publishes that a GPU has changed its state. by: the user who did it, or
 * NULL. */
void sample_card_event(struct instance *inst, int card, const char *state, const char *text,
                       const char *by);

#endif
