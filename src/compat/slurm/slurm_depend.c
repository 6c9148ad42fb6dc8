/* sbatch accepts a job whose dependency has failed already, where Berth refuses it: a script
 * that submits a chain would end in the middle of it. See slurm_depend.h. */
#include "compat/slurm/slurm_depend.h"

#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "base/request.h"
#include "cli/common/cli.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "wire/client.h"

static json_t *
word_of(const struct dep *dep)
{
    return dep->task >= 0 ? json_sprintf("%u_%d", dep->job, dep->task)
                          : json_sprintf("%u", dep->job);
}

/* Of an array, any of its tasks counts. */
static bool
has_failed(struct client *c, const struct dep *dep)
{
    auto_json json_t *select = json_pack("[o]", word_of(dep));
    const struct slurm_wish wish = {.select = select};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    bool all_ended = true, all_well = true;
    struct err e;

    if (dep->type == DEP_ANY || slurm_jobs_ask(c, &wish, &jobs, &e) < 0)
        return false;
    for (size_t i = 0; i < jobs.n; i++) {
        all_ended &= jobs.at[i].state->ended;
        all_well &= strcmp(jobs.at[i].state->name, "COMPLETED") == 0;
    }
    return jobs.n > 0 && all_ended && (dep->type == DEP_SUCCESS ? !all_well : all_well);
}

bool
slurm_cannot_start(const struct request *r, bool quiet)
{
    auto_client struct client *c = r->n_deps ? slurm_connect("sbatch") : NULL;

    for (int i = 0; c && i < r->n_deps; i++) {
        if (!has_failed(c, &r->deps[i]))
            continue;
        if (!quiet)
            cli_say("job %u has ended %s, so this job can never start and is cancelled",
                    r->deps[i].job,
                    r->deps[i].type == DEP_SUCCESS ? "without success" : "with success");
        return true;
    }
    return false;
}

/* Whether the daemon knows no such job. */
static bool
is_unknown(struct client *c, const struct dep *dep)
{
    auto_json json_t *select = json_pack("[o]", word_of(dep));
    const struct slurm_wish wish = {.select = select};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e;

    return slurm_jobs_ask(c, &wish, &jobs, &e) < 0 && e.code == ERR_NO_JOB;
}

bool
slurm_drop_unknown(struct request *r, bool quiet)
{
    auto_client struct client *c = r->n_deps ? slurm_connect("sbatch") : NULL;
    int n = 0, before = r->n_deps;

    if (!c)
        return false;
    for (int i = 0; i < before; i++) {
        if (!is_unknown(c, &r->deps[i])) {
            r->deps[n++] = r->deps[i];
        } else if (!quiet) {
            cli_say("job %u is not known, so this job does not wait for it", r->deps[i].job);
        }
    }
    r->n_deps = n;
    return n < before;
}
