/* Attempts of jobs on this machine: what the files of this folder share. */
#ifndef DAEMON_ATTEMPT_ATTEMPTS_H
#define DAEMON_ATTEMPT_ATTEMPTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "core/ledger/ledger.h"
#include "daemon/common/card_facts.h"
#include "daemon/common/instance.h"

struct err;
struct limits;

struct attempts {
    struct instance *inst;          /* borrowed, as are */
    const struct card_facts *cards; /* these */
    struct nursery *nursery;
    struct launches *launches;
    struct watcher *watcher;
    struct machine *machine;
    struct spare_folders *spare_folders;
    uv_timer_t strays_timer;  /* attempt_folder.c: folders whose shepherds had not left yet */
    int64_t strays_ms;        /* until it looks the next time */
    bool rebooted;            /* what the store calls running was of another boot */
    bool wants_device_filter; /* where it can be had: confines_devices */
    int64_t mps_looked_us;    /* boot clock: for its program (job_mps.c) */
    cpu_set_t node_cpus[LEDGER_NODES]; /* cpu_nodes.c: what jobs may use of each NUMA node */
};

/* Starts the nursery, in this unit of systemd's (NULL: in none). The rest is borrowed; in
 * limits, which are the planner's, stand the users whose jobs cannot be started now. NULL
 * with e. */
struct attempts *attempts_new(struct instance *inst, const struct card_facts *cards,
                              struct limits *limits, const char *unit, struct err *e);
void attempts_close(struct attempts *a); /* its handles; free after the loop has run */
void attempts_free(struct attempts *a);

#endif
