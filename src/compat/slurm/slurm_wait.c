/* Waits for a job to end or to start; see slurm_wait.h. */
#include "compat/slurm/slurm_wait.h"

#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_values.h"
#include "wire/client.h"

static int
status_of(const struct slurm_job *job)
{
    int code, signal;

    slurm_exit(job, &code, &signal);
    if (strcmp(job->state->name, "COMPLETED") == 0)
        return 0;
    return signal || code == 0 ? 1 : code;
}

static int
wait_for(struct client *c, json_t *select, struct slurm_jobs *jobs, struct err *e)
{
    const struct slurm_wish wish = {.select = select, .detail = SLURM_WHOLE};

    client_set_patience(c, 0);
    if (client_call(c, "wait", json_pack("{s:O}", "select", select), NULL, e) < 0)
        return -1;
    return slurm_jobs_ask(c, &wish, jobs, e);
}

int
slurm_wait(int64_t id)
{
    auto_client struct client *c = slurm_connect("sbatch");
    auto_json json_t *select = json_pack("[o]", json_sprintf("%lld", (long long)id));
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e = {0};
    int highest = 0;

    if (!c)
        return 1;
    if (wait_for(c, select, &jobs, &e) < 0)
        return slurm_fail(1, "the job may continue, but %s", e.text);
    for (size_t i = 0; i < jobs.n; i++) {
        int status = status_of(&jobs.at[i]);

        highest = status > highest ? status : highest;
    }
    return highest;
}

/* --- until the job runs --- */

/* Every event except usage samples may be the job's start or end. */
static void
on_event(void *ctx, const char *method, json_t *params)
{
    bool *changed = ctx;

    (void)method;
    *changed |= strcmp(answer_str(params, "kind"), "usage") != 0;
}

static json_t *
follow_params(void)
{
    return json_pack("{s:i, s:b}", "since", 0, "follow", 1);
}

/* The daemon restarted: the event may have been missed. */
static void
on_back(void *ctx, struct client *c)
{
    bool *changed = ctx;

    *changed = true;
    (void)client_send(c, "events", follow_params(), NULL);
}

/* 0: running; 1: look again after an event; -1: reported. */
static int
look(struct client *c, json_t *select)
{
    const struct slurm_wish wish = {.select = select};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e = {0};
    bool waits = false;

    if (slurm_jobs_ask(c, &wish, &jobs, &e) < 0)
        return slurm_fail(-1, "%s", e.code == ERR_NO_JOB ? "Invalid job id specified" : e.text);
    for (size_t i = 0; i < jobs.n; i++) {
        if (slurm_is_waiting(&jobs.at[i]))
            waits = true;
        else if (!jobs.at[i].state->ended)
            return 0;
    }
    return waits ? 1
                 : slurm_fail(-1, "Job %s no longer running",
                              json_string_value(json_array_get(select, 0)));
}

/* Follow events before the first look, so that no start is missed. */
int
slurm_wait_until_ready(int64_t id)
{
    auto_client struct client *c = slurm_connect("scontrol");
    auto_json json_t *select = json_pack("[o]", json_sprintf("%lld", (long long)id));
    struct err e = {0};
    bool changed = false;
    int rc;

    if (!c)
        return 1;
    client_listen(c, on_event, NULL, &changed);
    client_on_back(c, on_back, &changed);
    if (client_call(c, "events", follow_params(), NULL, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    while ((rc = look(c, select)) > 0) {
        while (!changed)
            if (client_wait(c, -1, &e) < 0)
                return slurm_fail(1, "%s", e.text);
        changed = false;
    }
    return rc < 0 ? 1 : 0;
}
