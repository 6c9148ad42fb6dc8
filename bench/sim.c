/* What virtual time costs. Makes a workload of JOBS jobs from a CSV by repeating it (the n-th
 * time shifted by n spans; LOAD times as dense), writes it as CSV;
 * or, with --run FILE POLICY..., reads a CSV and prints for each policy
 *
 *   POLICY: N events, S s, R events/s, W waiting at most
 *
 * Usage: bench-sim FILE JOBS LOAD >OUT, or bench-sim --run FILE POLICY... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "sim/engine.h"
#include "sim/workload/read.h"

static double
now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
die(const struct err *e)
{
    fprintf(stderr, "bench-sim: %s\n", e->text);
    exit(1);
}

static void
load(const char *file, struct workload *w)
{
    struct buf text = BUF_INIT;
    struct err e;
    if (file_read(file, UINT64_C(1) << 32, &text, &e) < 0 ||
        read_csv(file, text.data, text.len, w, &e) < 0 || workload_sort(w, file, &e) < 0)
        die(&e);
    buf_free(&text);
}

static void
write_csv(const struct workload *w, int64_t jobs, double times_as_dense)
{
    int64_t span = w->jobs[w->n - 1].arrival + w->jobs[w->n - 1].arrival / (int64_t)w->n;
    puts("job_id,arrival_s,duration_s,est_s,gpus,vram_mib");
    for (int64_t i = 0; i < jobs; i++) {
        const struct sim_job *job = &w->jobs[i % (int64_t)w->n];
        const struct shape *s = &w->shapes[job->shape];
        int64_t round = i / (int64_t)w->n;
        double arrival = (double)(round * span + job->arrival) / times_as_dense;
        printf("%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d\n", i, (int64_t)arrival,
               job->duration, job->estimate, s->n, s->vram_mib);
    }
}

static void
measure(const struct workload *w, const char *name)
{
    struct machine m = {.n = 8, .margin_mib = 512};
    struct engine engine;
    struct schedule s;
    struct err e;
    for (int i = 0; i < m.n; i++)
        m.total_mib[i] = 24576;
    bool is_known = engine_find(name, &engine);
    if (!is_known)
        err_set(&e, ERR_USAGE, "no policy %s", name);
    if (!is_known || workload_check(w, &m, "workload", &e) < 0)
        die(&e);
    double began = now_s();
    engine_run(&engine, w, &m, &s);
    double took = now_s() - began;
    printf("%s: %" PRIu64 " events, %.3f s, %.0f events/s, %zu waiting at most\n", name,
           s.events, took, (double)s.events / took, s.most_waiting);
    schedule_free(&s);
}

int
main(int argc, char **argv)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    struct err e;
    int64_t jobs = 0;
    double load_times = 1;
    if (argc >= 4 && strcmp(argv[1], "--run") == 0) {
        double began = now_s();
        load(argv[2], &w);
        printf("read: %zu jobs, %.3f s\n", w.n, now_s() - began);
        for (int i = 3; i < argc; i++)
            measure(&w, argv[i]);
        return 0;
    }
    if (argc != 4) {
        fputs("usage: bench-sim FILE JOBS LOAD >OUT; bench-sim --run FILE POLICY...\n", stderr);
        return 2;
    }
    if (parse_int(argv[2], 1, 100000000, &jobs, &e) < 0 ||
        parse_double(argv[3], 0.01, 100, &load_times, &e) < 0)
        die(&e);
    load(argv[1], &w);
    write_csv(&w, jobs, load_times);
    return 0;
}
