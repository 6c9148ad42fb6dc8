/* Whether a line of a jobs file asks for what its waiting job has already: then nothing is
 * changed, and nobody is told of a change. Called by method_file.c. */
#include <string.h>

#include "base/hook_list.h"
#include "daemon/request/file_sync.h"

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool
file_same_deps(const struct request *a, const struct request *b)
{
    if (a->n_deps != b->n_deps)
        return false;
    for (int i = 0; i < a->n_deps; i++)
        if (a->deps[i].type != b->deps[i].type || a->deps[i].job != b->deps[i].job ||
            a->deps[i].task != b->deps[i].task)
            return false;
    return true;
}

static bool
same_list(char *const *a, char *const *b)
{
    while (a && *a && b && *b && strcmp(*a, *b) == 0)
        a++, b++;
    return (!a || !*a) && (!b || !*b);
}

/* A begin time may be said as so much from now, so that it is a new one whenever the file is
 * read: the words count, where both are known (of jobs of 0.1 they are not). */
bool
file_same_begin(const struct request *a, const struct request *b)
{
    return !a->begin_us == !b->begin_us &&
           (!a->begin_said || !b->begin_said || strcmp(a->begin_said, b->begin_said) == 0);
}

static bool
same_times(const struct request *a, const struct request *b)
{
    return a->limit_ms == b->limit_ms && a->grace_ms == b->grace_ms &&
           a->on_timeout == b->on_timeout && a->max_requeues == b->max_requeues &&
           a->warn_signal == b->warn_signal && a->warn_ms == b->warn_ms &&
           a->warn_batch == b->warn_batch && file_same_begin(a, b);
}

bool
file_same_request(const struct request *a, const struct request *b)
{
    return memcmp(&a->demand, &b->demand, sizeof a->demand) == 0 &&
           a->priority == b->priority && a->oom_retries == b->oom_retries &&
           a->vram_auto == b->vram_auto && a->retries == b->retries && a->hold == b->hold &&
           a->requeue == b->requeue && a->screen == b->screen && a->unique == b->unique &&
           a->preemptible == b->preemptible && same_times(a, b) && file_same_deps(a, b) &&
           same_list(a->tags, b->tags) && same_text(a->name, b->name) &&
           same_text(a->log, b->log) && same_text(a->error, b->error) &&
           same_text(a->comment, b->comment) && same_text(a->chdir, b->chdir) &&
           same_list(a->env, b->env) && a->truncate == b->truncate &&
           a->log_max_mib == b->log_max_mib && a->slurm_env == b->slurm_env &&
           same_text(a->env_setup, b->env_setup) && same_text(a->conda, b->conda) &&
           hooks_equal(a->hooks, b->hooks);
}
