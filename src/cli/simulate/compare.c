/* Each draw of each file is a separate piece of work; as many run in parallel as there are
 * cores. The results do not depend on that number. */
#include "cli/simulate/compare.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/common/cli.h"
#include "sim/workload/resample.h"

#define THREADS_MAX 256

/* Shared by the threads. */
struct work {
    struct comparison *c;
    struct engine bases[BASES];
    atomic_int next; /* next piece: file x draws + draw */
};

static void
run_trials(const struct work *work, const struct workload *w, struct metrics *out)
{
    const struct comparison *c = work->c;
    const struct simulation *sim = c->sim;
    for (int i = 0; i < c->n_trials; i++) {
        auto_schedule struct schedule s = {0};
        struct engine e = i < BASES ? work->bases[i] : sim->policies[i - BASES];
        e.aging_ms = sim->aging_ms;
        e.reservations = simulate_reservations(sim, &e);
        e.horizon_ms = simulate_horizon_ms(sim, &e);
        engine_run(&e, w, &sim->machine, &s);
        metrics_compute(w, &sim->machine, &s, &out[i]);
    }
}

static void *
run_pieces(void *arg)
{
    struct work *work = arg;
    const struct comparison *c = work->c;
    int piece, n = c->n_files * c->n_draws;
    while ((piece = atomic_fetch_add(&work->next, 1)) < n) {
        const struct workload *base = &c->workloads[piece / c->n_draws];
        auto_workload struct workload drawn = WORKLOAD_INIT;
        uint32_t seed = (uint32_t)(c->sim->seed + piece % c->n_draws);
        if (c->sim->draws)
            workload_resample(base, seed, &drawn);
        run_trials(work, c->sim->draws ? &drawn : base, &c->trials[piece * c->n_trials]);
    }
    return NULL;
}

/* This thread works too, so the work completes even if no other can be created. */
static void
run_on_all_cores(struct comparison *c)
{
    struct work work = {.c = c};
    pthread_t threads[THREADS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = 0;
    if (!engine_find("greedy", &work.bases[BASE_GREEDY]) ||
        !engine_find("easy-e", &work.bases[BASE_EASY]))
        err_abort("the policies to compare with are missing");
    while (n + 1 < cores && n < THREADS_MAX &&
           pthread_create(&threads[n], NULL, run_pieces, &work) == 0)
        n++;
    run_pieces(&work);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

static int
read_files(const struct cli *cli, struct simulation *sim, struct comparison *c, struct err *e)
{
    enum format format = sim->format;
    for (int i = 0; i < c->n_files; i++) {
        sim->file = c->files[i];
        sim->format = format;
        int result = simulate_read(cli, sim, e);
        c->workloads[i] = sim->workload;
        sim->workload = (struct workload)WORKLOAD_INIT;
        if (result < 0)
            return -1;
        if (sim->draws && sim->format == FORMAT_JOBS)
            return err_set(e, ERR_USAGE,
                           "%s: a jobs file has no arrival times to draw from; omit --draws",
                           sim->file);
    }
    return 0;
}

static int
report(const struct cli *cli, const struct comparison *c)
{
    auto_buf struct buf picture = BUF_INIT;
    struct err e;
    if (c->sim->svg) {
        compare_draw(c, &picture);
        if (simulate_write_file(c->sim->svg, &picture, &e) < 0)
            return cli_fail(&e);
    }
    return cli->json ? compare_print_json(c) : compare_print_table(c);
}

int
simulate_compare(const struct cli *cli, struct simulation *sim, char **files, int n)
{
    struct comparison c = {.sim = sim,
                           .files = files,
                           .n_files = n,
                           .n_draws = sim->draws ? (int)sim->draws : 1,
                           .n_trials = BASES + sim->n_policies};
    struct err e;
    int status;
    c.workloads = xcalloc((size_t)n, sizeof *c.workloads);
    c.trials = xcalloc((size_t)n * (size_t)c.n_draws * (size_t)c.n_trials, sizeof *c.trials);
    if (read_files(cli, sim, &c, &e) < 0) {
        status = cli_fail(&e);
    } else {
        run_on_all_cores(&c);
        status = report(cli, &c);
    }
    for (int i = 0; i < n; i++)
        workload_free(&c.workloads[i]);
    free(c.workloads);
    free(c.trials);
    return status;
}
