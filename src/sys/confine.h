/* What can be enforced on jobs that run in the place where a process is: found by trying it
 * there. The nursery looks, as jobs are started where it is; the daemon hears the answer from
 * it, puts paths into specs, and repeats it to `berth doctor` and to clients that ask. */
#ifndef SYS_CONFINE_H
#define SYS_CONFINE_H

#include <jansson.h>
#include <stdbool.h>

#include "sys/cgroup_v1.h"

struct jsonw;

enum confine_part {
    CONFINE_END,       /* every process of a job is found and killed, whatever it did */
    CONFINE_MEMORY,    /* --mem */
    CONFINE_SWAP,      /* the same limit holds for memory and swap together */
    CONFINE_CPUS,      /* --cpus */
    CONFINE_PROCESSES, /* job_max_processes */
    CONFINE_DEVICES,   /* device_filter */
    CONFINE_VRAM,      /* VRAM of cards that the kernel counts (dmem) */
    CONFINE_FOLDERS,   /* what users write into their folders of MPS */
    CONFINE_PARTS
};

/* Zero means: nothing can be had. */
struct confinement {
    char *base;               /* owned; the v2 folder for groups of attempts; NULL: none */
    char *v1[CGROUP_V1_N];    /* owned; the same of v1 controllers that v2 lacks; or NULL */
    char *cpus;               /* owned; CPUs that jobs may use there, "0-15"; NULL: not known */
    bool has[CONFINE_PARTS];  /* it was tried, and works */
    char *why[CONFINE_PARTS]; /* owned; in words, where it does not */
};

/* Makes the folder `name` ("berth-" and eight hex digits) in the groups of the calling process,
 * and tries what groups in it can do. Never fails: what cannot be had says why. */
void confine_find(const char *name, struct confinement *out);

/* Frees what it owns; groups stay. */
void confine_free(struct confinement *c);

/* "kill", "memory", "swap", "cpus", "processes", "devices", "vram", "folders". */
const char *confine_name(enum confine_part part);

/* As an object: {"cgroup","v1":{},"cpus","enforced":{},"why":{}}. Reading gives back what was
 * written; false, and *out empty, for anything else. */
void confine_write(const struct confinement *c, struct jsonw *w);
bool confine_read(const json_t *from, struct confinement *out);

#endif
