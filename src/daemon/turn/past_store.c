/* See past_store.h. */
#include "daemon/turn/past_store.h"

#include "base/err.h"
#include "core/learn/demands.h"
#include "store/store.h"

#define TRIM_EVERY 4096 /* ends between trims, which visit every row */

static uint32_t
next_job_id(void *arg)
{
    return store_next_job_id(arg);
}

static uint64_t
next_order(void *arg)
{
    return store_next_order(arg);
}

static int
find_job(void *arg, uint32_t id, struct found_job *out, struct err *e)
{
    return store_find_job(arg, id, out, e);
}

static struct job *
load_job(void *arg, uint32_t id, struct err *e)
{
    return store_job_load(arg, id, e);
}

static int
find_named(void *arg, uint32_t uid, const char *name, struct found_job *out, struct err *e)
{
    return store_find_named(arg, uid, name, out, e);
}

static int
find_task(void *arg, uint32_t array, int32_t task, struct found_job *out, struct err *e)
{
    return store_find_task(arg, array, task, out, e);
}

static int
find_same(void *arg, uint32_t uid, const char *fingerprint, struct found_job *out,
          struct err *e)
{
    return store_find_same(arg, uid, fingerprint, out, e);
}

static int
array_tasks(void *arg, uint32_t id, struct task_set *out, struct err *e)
{
    return store_array_tasks(arg, id, out, e);
}

static struct store_peaks_key
key_of(const struct job *job)
{
    return (struct store_peaks_key){job->uid, job->fingerprint,
                                    demand_n_gpus(&job->req.demand)};
}

static int
peaks_get(void *arg, const struct job *job, struct learned *out, struct err *e)
{
    const struct store_peaks_key key = key_of(job);
    return store_peaks_get(arg, &key, out, e);
}

static void
peaks_put(void *arg, const struct job *job, const struct learned *known)
{
    const struct store_peaks_key key = key_of(job);
    struct err e; /* errors stick to the store; its commit reports them */
    store_peaks_put(arg, &key, known, job->run->ending.ended_us, &e);
    if (job->id % TRIM_EVERY == 0)
        store_peaks_trim(arg, &e);
}

struct past
past_of_store(struct store *s)
{
    return (struct past){.arg = s,
                         .next_job_id = next_job_id,
                         .next_order = next_order,
                         .load_job = load_job,
                         .find_job = find_job,
                         .find_named = find_named,
                         .find_task = find_task,
                         .find_same = find_same,
                         .array_tasks = array_tasks,
                         .peaks_get = peaks_get,
                         .peaks_put = peaks_put};
}
