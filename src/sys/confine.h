/* What can be enforced on jobs started from a given process, found by trying it there. The
 * nursery tries, because jobs are started from it. The daemon gets the answer from the
 * nursery, puts paths into specs, and passes it on to `berth doctor` and other clients. */
#ifndef SYS_CONFINE_H
#define SYS_CONFINE_H

#include <jansson.h>
#include <stdbool.h>

#include "sys/cgroup_v1.h"

struct jsonw;

enum confine_part {
    CONFINE_END,       /* every process of a job is found and killed, whatever it does */
    CONFINE_MEMORY,    /* --mem */
    CONFINE_SWAP,      /* the same limit covers memory plus swap */
    CONFINE_CPUS,      /* --cpus */
    CONFINE_PROCESSES, /* job_max_processes */
    CONFINE_DEVICES,   /* device_filter */
    CONFINE_VRAM,      /* VRAM of GPUs that the kernel accounts for (dmem) */
    CONFINE_FOLDERS,   /* size of users' MPS folders */
    CONFINE_PARTS
};

/* All zero: nothing can be enforced. */
struct confinement {
    char *base;               /* owned; the v2 folder for groups of attempts; NULL: none */
    char *v1[CGROUP_V1_N];    /* owned; v1 folders for controllers that v2 lacks; or NULL */
    char *cpus;               /* owned; CPUs that jobs may use, "0-15"; NULL: not known */
    bool has[CONFINE_PARTS];  /* tried, and works */
    char *why[CONFINE_PARTS]; /* owned; the reason, if it does not work */
};

/* Makes the folder `name` ("berth-" and eight hex digits) in the groups of the calling
 * process, and tries what groups in it can enforce. Never fails: `why` explains what does not
 * work. */
void confine_find(const char *name, struct confinement *out);

/* Frees what it owns; groups stay. */
void confine_free(struct confinement *c);

/* "kill", "memory", "swap", "cpus", "processes", "devices", "vram", "folders". */
const char *confine_name(enum confine_part part);

/* As an object: {"cgroup","v1":{},"cpus","enforced":{},"why":{}}. confine_read accepts exactly
 * this form; on anything else it returns false and clears *out. */
void confine_write(const struct confinement *c, struct jsonw *w);
bool confine_read(const json_t *from, struct confinement *out);

#endif
