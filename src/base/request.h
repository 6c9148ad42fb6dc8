/* What one job asks for: the plain value that every door (command line, jobs file, socket)
 * produces and that the scheduler reads. Zero-initialised with request_init's defaults. */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX          64 /* cards in one machine: one bit each in a set */
#define REQUEST_IDS_MAX  16 /* exact ids in one request */
#define PRIORITY_MIN     -1000
#define PRIORITY_MAX     1000
#define RETRIES_MAX      100
#define VRAM_MAX_MIB     (16 * 1024 * 1024)
#define GRACE_DEFAULT_MS 10000

/* What decides where a job can run. Two jobs with equal demands stand in one line, so this
 * must be comparable with memcmp: set it with demand_init (or memset 0) first. */
struct demand {
    uint64_t devices;  /* any of these indices; 0: all */
    int32_t gpus;      /* how many; 0: CPU only */
    int32_t vram_mib;  /* on each GPU; 0: not declared, wants each GPU whole and idle */
    int32_t cpus;      /* booked cores; 0: none */
    int32_t mem_mib;   /* booked host memory; 0: none */
    uint8_t exclusive; /* 1: no other Berth job beside it */
    uint8_t n_ids;     /* exact GPUs, in this order; 0: any */
    uint8_t ids[REQUEST_IDS_MAX];
    uint8_t pad[6];
};

struct request {
    struct demand demand;
    int32_t priority;    /* higher first; 0 */
    int32_t oom_retries; /* attempts more after a CUDA OOM; -1: not said */
    int32_t retries;     /* attempts more after any failure; 0 */
    int64_t limit_ms;    /* time limit of one attempt; 0: none */
    int64_t grace_ms;    /* between TERM and KILL */
    bool hold;           /* enters the queue held */
    bool cancel;         /* a jobs-file word: stop it, or never start it */
    bool requeue;  /* run again when it was lost (its supervisor died, the machine went down) */
    char *name;    /* owned; NULL: none */
    char *command; /* owned; shell text for /bin/sh -c, or NULL when argv is set */
    char **argv;   /* owned, NULL-terminated; or NULL */
    char *log;     /* owned; where output goes, %j the job's id; NULL: the instance's place */
};

void request_init(struct request *r);
void request_free(struct request *r); /* what it owns; not r */
void demand_init(struct demand *d);   /* one whole GPU */

#endif
