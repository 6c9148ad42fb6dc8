/* The GPUs of this machine: what the files of this folder share. */
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

/* What is asked of the code for attempts, whose processes use the GPUs. */
struct cards_host {
    void *arg;
    /* What can be confined where attempts run. */
    const struct confinement *(*place)(void *arg);
    /* The job whose supervisor this process is; 0: it is none. */
    uint32_t (*job_of_supervisor)(void *arg, pid_t pid);
    /* What MPS on this card says of itself; false: there is none. */
    bool (*mps_said)(void *arg, int card, struct mps_state *out);
    /* For the probe: appends a line for each card of each job that runs under a cap. */
    void (*add_capped)(void *arg, struct buf *out);
    /* The probe has come with this hello, which has the machine's CPUs too; and a sample. */
    void (*on_hello)(void *arg, const json_t *hello);
    void (*on_sample)(void *arg);
    /* The job uses more than it declared, and is to end for that. */
    void (*on_excess)(void *arg, struct job *job);
};

struct cards {
    struct instance *inst;    /* borrowed, as are */
    struct card_facts *facts; /* these */
    struct cards_host host;
    struct prober *prober;
    struct health *health;
    struct telemetry *telemetry;
    struct gpulock *locks;
    char *lock_conflict;    /* words, when another daemon has one of the cards */
    bool are_unknown;       /* the probe does not answer */
    int n_saved;            /* card_numbers.c: so many are in the store, under their numbers */
    uv_timer_t clear_timer; /* vram_wait.c: the wait for the memory of ended jobs */
};

/* Without a prober, which prober_new adds once it is known what there is to probe. */
struct cards *cards_new(struct instance *inst, struct card_facts *facts,
                        const struct cards_host *host);
void cards_close(struct cards *cards); /* its handles; free after the loop has run */
void cards_free(struct cards *cards);

#endif
