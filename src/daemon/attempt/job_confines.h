/* What confines a job and the processes that act for it: cgroups, devices, account rules. */
#ifndef DAEMON_ATTEMPT_JOB_CONFINES_H
#define DAEMON_ATTEMPT_JOB_CONFINES_H

#include <stdbool.h>

struct attempts;
struct demand;
struct instance;
struct job;
struct jsonw;

/* Writes members into the current object: the rules by which the account is checked before a
 * process becomes its user (shepherd/begin/account_rules.h), and the privileges it can
 * never gain. */
void confines_write_account(const struct instance *inst, struct jsonw *w);

/* Writes the cgroups for one of the job's processes, with their limits and the GPUs it may
 * open, as members of a spec or an order. name: of the groups; NULL: the attempt's own. */
void confines_write_groups(const struct attempts *a, const struct job *job, const char *name,
                           struct jsonw *w);

/* Writes the CPUs to which the job's attempt is bound, as a member of the spec. */
void confines_write_cpus(const struct attempts *a, const struct job *job, struct jsonw *w);

/* True if a job started now could open only its own GPUs. */
bool confines_devices(const struct attempts *a);

/* Writes members into the current object: "device_filter", whether a job started now could open
 * only its own GPUs; "device_filter_required", whether the setting is `on`; "unfiltered_gpus",
 * the numbers of GPUs of unknown devices, whose jobs can open all GPUs nevertheless. */
void confines_write_filter(const struct attempts *a, struct jsonw *w);

/* A message about a memory limit that a job requests but that cannot be enforced here; NULL:
 * none. The caller frees. */
char *confines_unenforced(const struct attempts *a, const struct demand *need);

#endif
