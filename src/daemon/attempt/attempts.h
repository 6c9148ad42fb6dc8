/* Attempts of jobs on this machine: the struct shared by the files of this folder. */
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
    struct instance *inst;          /* borrowed */
    const struct card_facts *cards; /* borrowed */
    struct nursery *nursery;
    struct launches *launches;
    struct watcher *watcher;
    struct machine *machine;
    struct spare_folders *spare_folders;
    uv_timer_t strays_timer;  /* attempt_folder.c: to remove folders that were still in use */
    int64_t strays_ms;        /* until the next try */
    bool rebooted;            /* attempts stored as running are of an earlier boot */
    bool wants_device_filter; /* if available: see confines_devices */
    int64_t mps_looked_us;    /* boot clock: last look for the MPS program (job_mps.c) */
    cpu_set_t node_cpus[LEDGER_NODES]; /* cpu_nodes.c: CPUs for jobs, by NUMA node */
};

/* Starts the nursery in this systemd unit (NULL: none). All else is borrowed; limits are the
 * planner's, and receive the users whose jobs cannot be started now. NULL with e. */
struct attempts *attempts_new(struct instance *inst, const struct card_facts *cards,
                              struct limits *limits, const char *unit, struct err *e);
void attempts_close(struct attempts *a); /* closes handles; free after the loop has run */
void attempts_free(struct attempts *a);

#endif
