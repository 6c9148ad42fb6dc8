/* The cost of durability: the store's own times, without the daemon around it. Run it on the
 * disk in question: bench-store [DIR], default the current folder. CPU time is this
 * process's. */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counted_text.h"
#include "base/err.h"

#define JOBS    10000
#define TURNS   200
#define LIVES   2000
#define ENV_LEN 4000

static struct err err;

static void
must(int rc)
{
    if (rc < 0)
        err_abort("%s", err.text);
}

static int64_t
now_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct lap {
    int64_t wall, cpu;
};

static struct lap
lap_start(void)
{
    return (struct lap){now_us(CLOCK_MONOTONIC), now_us(CLOCK_PROCESS_CPUTIME_ID)};
}

static void
lap_print(const char *what, struct lap from, int n)
{
    double wall = (double)(now_us(CLOCK_MONOTONIC) - from.wall);
    double cpu = (double)(now_us(CLOCK_PROCESS_CPUTIME_ID) - from.cpu);

    printf("%-44s %9.2f ms  %8.2f us each  %8.2f us CPU each\n", what, wall / 1000, wall / n,
           cpu / n);
}

static struct job *
job_make(struct store *s, int64_t env, uint32_t file)
{
    struct job *job = job_new();

    job->id = store_next_job_id(s);
    job->uid = 1000;
    job->order = store_next_order(s);
    job->submitted_us = clock_wall_us();
    job->req.command = xasprintf("python train.py --config configs/run-%u.yaml --seed %u",
                                 job->id, job->id * 7);
    job->req.demand.vram_mib = 18432;
    job->declared_mib = 18432;
    job->cwd = shared_new("/home/alice/experiments");
    job->file = file;
    job->line = (int32_t)job->id;
    job->key = xasprintf("%012x#1", job->id);
    job->env = env;
    return job;
}

static void
event_add(struct store *s, const char *kind, const struct job *job)
{
    auto_free char *json =
        xasprintf("{\"user\":\"alice\",\"command\":\"%s\",\"gpus\":[0],\"vram_mib\":18432}",
                  job->req.command);
    struct store_event event = {0,    clock_wall_us(), kind, job->id, job->file,
                                json, strlen(json)};

    must(store_event_add(s, &event, &err));
}

static void
job_start(struct store *s, struct job *job)
{
    static const char *const uuid[] = {"GPU-8d5f7a1c-2b64-4a0e-9d2f-0f1e2d3c4b5a"};

    job->run = attempt_new(++job->attempts);
    job->run->n_gpus = 1;
    job->state = JOB_STARTING;
    must(store_attempt_insert(s, job->id, job->run, uuid, &err));
    must(store_job_update(s, job, &err));
    event_add(s, "started", job);
}

static void
job_end(struct store *s, struct job *job)
{
    job->state = JOB_COMPLETED;
    job->ended_us = clock_wall_us();
    job->run->ending.outcome = OUTCOME_EXITED;
    job->run->peak_mib[0] = 17001;
    must(store_attempt_update(s, job->id, job->run, &err));
    must(store_job_update(s, job, &err));
    event_add(s, "ended", job);
}

static void
bench_insert(struct store *s, int64_t env, uint32_t file)
{
    struct job **jobs = xcalloc(JOBS, sizeof(struct job *));
    struct lap lap;

    for (int i = 0; i < JOBS; i++)
        jobs[i] = job_make(s, env, file);
    lap = lap_start();
    for (int i = 0; i < JOBS; i++) {
        must(store_job_insert(s, jobs[i], &err));
        event_add(s, "submitted", jobs[i]);
    }
    must(store_commit(s, &err));
    lap_print("10,000 jobs and events, one commit", lap, JOBS);
    lap = lap_start();
    must(store_checkpoint(s, &err));
    lap_print("checkpoint after that", lap, 1);
    for (int i = 0; i < JOBS; i++)
        job_free(jobs[i]);
    free(jobs);
}

static void
bench_commit(struct store *s)
{
    struct job *job = store_job_load(s, 1, &err);
    struct lap lap = lap_start();

    for (int i = 0; i < TURNS; i++) {
        job->line = i;
        for (int k = 0; k < 3; k++)
            must(store_job_update(s, job, &err));
        must(store_commit(s, &err));
    }
    lap_print("a turn with 3 updates, committed", lap, TURNS);
    job_free(job);
}

/* together: all of them in one turn, else a commit after each step. */
static void
bench_lives(struct store *s, int64_t env, uint32_t file, int n, bool together, const char *what)
{
    struct lap lap = lap_start();

    for (int i = 0; i < n; i++) {
        struct job *job = job_make(s, env, file);
        must(store_job_insert(s, job, &err));
        event_add(s, "submitted", job);
        if (!together)
            must(store_commit(s, &err));
        job_start(s, job);
        if (!together)
            must(store_commit(s, &err));
        job_end(s, job);
        if (!together)
            must(store_commit(s, &err));
        job_free(job);
    }
    must(store_commit(s, &err));
    lap_print(what, lap, n);
}

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    ++*(int *)arg;
    job_free(job);
    return 0;
}

static int
on_borrowed(struct job *job, const char *const *uuids, void *arg)
{
    (void)job;
    (void)uuids;
    ++*(int *)arg;
    return 0;
}

static int
on_key(const struct store_key *key, void *arg)
{
    (void)key;
    ++*(int *)arg;
    return 0;
}

static void
bench_reads(struct store *s, uint32_t file)
{
    struct store_filter newest = {.limit = 100, .newest_first = true};
    struct store_keys_at at = {0};
    struct lap lap = lap_start();
    int n = 0;

    must(store_jobs_load_live(s, on_job, &n, &err));
    lap_print("load what has not ended", lap, n);
    n = 0;
    lap = lap_start();
    must(store_file_keys(s, file, &at, on_key, &n, &err));
    lap_print("the keys of a file", lap, n);
    n = 0;
    lap = lap_start();
    must(store_jobs_select(s, &newest, on_borrowed, &n, &err));
    lap_print("the newest 100", lap, n);
}

static void
remove_all(const char *dir)
{
    static const char *const names[] = {"berth.db", "berth.db-wal", "reserve"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        auto_free char *path = xasprintf("%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

int
main(int argc, char **argv)
{
    auto_free char *dir = xasprintf("%s/berth-bench-store-XXXXXX", argc > 1 ? argv[1] : ".");
    char env[ENV_LEN];
    struct store *s;
    struct rusage usage;
    struct lap lap;
    uint32_t file;
    int64_t env_id;

    if (!mkdtemp(dir))
        err_abort("cannot make %s", dir);
    lap = lap_start();
    must(store_open(dir, &s, &err));
    lap_print("open, the first time", lap, 1);
    memset(env, 'x', sizeof(env));
    must(store_env_put(s, env, sizeof(env), &env_id, &err));
    must(store_file_id(s, 1000, "/home/alice/jobs.txt", &file, &err));
    bench_insert(s, env_id, file);
    bench_commit(s);
    bench_lives(s, env_id, file, LIVES, true, "whole lives of jobs, one commit");
    bench_lives(s, env_id, file, TURNS, false, "whole lives of jobs, 3 commits each");
    bench_reads(s, file);
    store_close(s);
    lap = lap_start();
    must(store_open(dir, &s, &err));
    lap_print("open again", lap, 1);
    store_close(s);
    getrusage(RUSAGE_SELF, &usage);
    printf("largest memory %ld KiB\n", usage.ru_maxrss);
    remove_all(dir);
    return 0;
}
