/* The GPUs of this machine: the state shared by the files of this folder. */
#ifndef DAEMON_GPU_MACHINE_CARDS_H
#define DAEMON_GPU_MACHINE_CARDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/common/card_facts.h"
#include "daemon/common/instance.h"

struct buf;
struct confinement;
struct job;
struct mps_state;

/* Callbacks into the code for attempts, whose processes use the GPUs. */
struct cards_host {
    void *arg;
    /* What can be confined in the place where attempts run. */
    const struct confinement *(*place)(void *arg);
    /* The job whose supervisor has this pid; 0: none. */
    uint32_t (*job_of_supervisor)(void *arg, pid_t pid);
    /* What MPS on this GPU reports; false: MPS does not run there. */
    bool (*mps_said)(void *arg, int card, struct mps_state *out);
    /* For the probe: appends a line for each GPU of each job that runs under a VRAM cap. */
    void (*add_capped)(void *arg, struct buf *out);
    /* on_hello: a probe has sent this hello, which also describes the machine's CPUs.
     * on_sample: a sample has arrived. */
    void (*on_hello)(void *arg, const json_t *hello);
    void (*on_sample)(void *arg);
    /* The job uses more VRAM than it declared and must be ended. */
    void (*on_excess)(void *arg, struct job *job);
};

struct cards {
    struct instance *inst; /* borrowed, as is facts */
    struct card_facts *facts;
    struct cards_host host;
    struct prober *prober;
    struct health *health;
    struct telemetry *telemetry;
    struct gpulock *locks;
    char *lock_conflict;    /* error text if another daemon holds one of the GPUs */
    bool are_unknown;       /* the probe does not answer */
    int n_saved;            /* card_numbers.c: number of GPUs stored; -1: store again */
    uv_timer_t clear_timer; /* vram_wait.c: the wait for the memory of ended jobs */
};

/* Does not create the prober: call prober_new once it is known what to probe. */
struct cards *cards_new(struct instance *inst, struct card_facts *facts,
                        const struct cards_host *host);
void cards_close(struct cards *cards); /* closes its handles; free after the loop has run */
void cards_free(struct cards *cards);

#endif
