/* The machine in Slurm's terms; see slurm_node.h. Cores and memory count as used if a job
 * requested them, GPUs if a job runs on them. */
#include "compat/slurm/slurm_node.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_values.h"
#include "wire/client.h"

static void
look_at_host(struct slurm_machine *m)
{
    struct sysinfo info;
    double load = 0;

    m->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (sysinfo(&info) == 0) {
        m->mem_mib = (int64_t)(info.totalram * info.mem_unit >> 20);
        m->mem_free_mib = (int64_t)(info.freeram * info.mem_unit >> 20);
        m->booted_us = clock_wall_us() - (int64_t)info.uptime * 1000000;
    }
    if (getloadavg(&load, 1) == 1)
        m->load = load;
}

static int
ask_jobs(struct client *c, struct slurm_machine *m, struct err *e)
{
    const struct slurm_wish wish = {0};
    auto_slurm_jobs struct slurm_jobs jobs = {0};

    if (slurm_jobs_ask(c, &wish, &jobs, e) < 0)
        return -1;
    for (size_t i = 0; i < jobs.n; i++) {
        if (slurm_is_waiting(&jobs.at[i]))
            continue;
        m->jobs++;
        m->cpus_used += slurm_cpus(&jobs.at[i]);
        m->mem_used_mib += slurm_mem_mib(&jobs.at[i]);
    }
    if (m->cpus_used > m->cpus)
        m->cpus_used = m->cpus;
    return 0;
}

static bool
takes_work(const json_t *gpu)
{
    return strcmp(answer_str(gpu, "state"), "up") == 0 && !answer_bool(gpu, "paused");
}

/* Returns the number of GPUs that accept new jobs. */
static int
count_gpus(const json_t *gpus, struct slurm_machine *m)
{
    const json_t *gpu;
    int open = 0;
    size_t i;

    json_array_foreach(gpus, i, gpu)
    {
        m->gpus++;
        m->gpus_used += json_array_size(json_object_get(gpu, "jobs")) > 0;
        open += takes_work(gpu);
        if (!takes_work(gpu) && !m->reason[0])
            snprintf(m->reason, sizeof m->reason, "%s", answer_str(gpu, "state_text"));
    }
    return open;
}

static void
set_state(struct slurm_machine *m, int open)
{
    static const struct {
        const char *state, *code;
    } states[] = {{"idle", "idle"},
                  {"mixed", "mix"},
                  {"allocated", "alloc"},
                  {"drained", "drain"},
                  {"draining", "drng"}};
    bool is_shut = m->gpus > 0 && open == 0;
    int which = is_shut                   ? (m->jobs ? 4 : 3)
                : m->jobs == 0            ? 0
                : m->cpus_used >= m->cpus ? 2
                                          : 1;

    m->state = states[which].state;
    m->code = states[which].code;
    if (!is_shut)
        m->reason[0] = '\0';
}

int
slurm_machine_ask(struct client *c, struct slurm_machine *out, struct err *e)
{
    auto_json json_t *status = NULL;
    int open;

    *out = (struct slurm_machine){0};
    look_at_host(out);
    if (ask_jobs(c, out, e) < 0 || client_call(c, "status", NULL, &status, e) < 0)
        return -1;
    open = count_gpus(json_object_get(status, "gpus"), out);
    out->started_us =
        clock_wall_us() - (int64_t)(json_number_value(json_object_get(
                                        json_object_get(status, "daemon"), "uptime_s")) *
                                    1e6);
    set_state(out, open);
    return 0;
}
