/* Runs histories; each in a process of its own, so that a broken invariant or an abort is a
 * result and not the end. A history that fails is run again with fewer and fewer steps, as
 * long as it still fails, and then told step by step.
 *
 * Usage: chaos [--seeds N] [--seed N] [--steps N] [--dir DIR]
 *   --seeds   so many histories, from --seed on (1); 0: for ever
 *   --steps   of each
 *   --dir     where the stores lie: on tmpfs, for every step is a commit */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "world.h"

#define SHRINK_RUNS 1000

/* The steps to run, in order. */
struct history {
    uint64_t seed;
    long *steps;
    size_t n;
};

struct options {
    int64_t seed, seeds, steps;
    const char *dir;
};

static void
clear_store(const char *dir)
{
    static const char *const names[] = {"berth.db", "berth.db-wal", "berth.db-shm", "reserve"};
    char path[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            err_abort("cannot remove %s: %s", path, strerror(errno));
    }
}

static void
live(const struct history *h, const char *dir, bool verbose)
{
    struct world *w = world_new(h->seed, dir, verbose);
    for (size_t i = 0; i < h->n; i++)
        world_step(w, h->steps[i]);
    world_drain(w);
    if (verbose || isatty(STDERR_FILENO))
        fprintf(stderr, "seed %llu: %zu jobs, %zu promises kept\n", (unsigned long long)h->seed,
                w->n_ended, w->n_promised);
    world_free(w);
    exit(0);
}

enum words { WORDS_NONE, WORDS_LAST, WORDS_ALL };

/* Returns true if the history ran without a failure. */
static bool
run(const struct history *h, const char *dir, enum words words)
{
    int status;
    clear_store(dir);
    pid_t child = fork();
    if (child < 0)
        err_abort("cannot fork: %s", strerror(errno));
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (words == WORDS_NONE && null >= 0)
            dup2(null, STDERR_FILENO);
        live(h, dir, words == WORDS_ALL);
    }
    if (waitpid(child, &status, 0) < 0)
        err_abort("cannot wait: %s", strerror(errno));
    clear_store(dir);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
fill(struct history *h, uint64_t seed, long steps)
{
    h->seed = seed;
    h->n = (size_t)steps;
    for (size_t i = 0; i < h->n; i++)
        h->steps[i] = (long)i + 1;
}

/* The history without the count steps from begin on. */
static bool
still_fails_without(const struct history *h, size_t begin, size_t count, struct history *less,
                    const char *dir)
{
    less->seed = h->seed;
    less->n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (i < begin || i >= begin + count)
            less->steps[less->n++] = h->steps[i];
    }
    return !run(less, dir, WORDS_NONE);
}

static void
shrink(struct history *h, const char *dir)
{
    struct history less = {.steps = xcalloc(h->n + 1, sizeof *less.steps)};
    int runs = 0;
    for (size_t chunk = h->n / 2; chunk > 0 && runs < SHRINK_RUNS; chunk /= 2) {
        for (size_t end = h->n; end > 0 && runs < SHRINK_RUNS; runs++) {
            size_t count = chunk < end ? chunk : end;
            if (still_fails_without(h, end - count, count, &less, dir)) {
                h->n = less.n;
                memcpy(h->steps, less.steps, less.n * sizeof *h->steps);
            }
            end -= count;
        }
    }
    free(less.steps);
}

static int
try_seed(const struct options *o, uint64_t seed, struct history *h)
{
    fill(h, seed, (long)o->steps);
    if (run(h, o->dir, WORDS_LAST))
        return 0;
    fprintf(stderr, "seed %llu fails; looking for a short history that does\n",
            (unsigned long long)seed);
    shrink(h, o->dir);
    fprintf(stderr, "these %zu steps of seed %llu are enough:\n", h->n,
            (unsigned long long)seed);
    run(h, o->dir, WORDS_ALL);
    return 1;
}

static int
read_options(int argc, char **argv, struct options *o)
{
    struct err e;
    *o = (struct options){.seed = 1, .seeds = 8, .steps = 2000, .dir = NULL};
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t *number = strcmp(argv[i], "--seed") == 0    ? &o->seed
                          : strcmp(argv[i], "--seeds") == 0 ? &o->seeds
                          : strcmp(argv[i], "--steps") == 0 ? &o->steps
                                                            : NULL;
        if (strcmp(argv[i], "--dir") == 0)
            o->dir = argv[i + 1];
        else if (!number || parse_int(argv[i + 1], 0, INT64_C(1) << 32, number, &e) < 0)
            return -1;
    }
    return argc % 2 ? 0 : -1;
}

int
main(int argc, char **argv)
{
    struct options o;
    char dir[] = "/dev/shm/berth-chaos-XXXXXX", elsewhere[] = "/tmp/berth-chaos-XXXXXX";
    int status = 0;
    if (read_options(argc, argv, &o) < 0) {
        fputs("usage: chaos [--seeds N] [--seed N] [--steps N] [--dir DIR]\n", stderr);
        return 2;
    }
    const char *made = o.dir ? NULL : mkdtemp(dir);
    if (!o.dir && !made)
        made = mkdtemp(elsewhere);
    if (!o.dir)
        o.dir = made;
    if (!o.dir)
        err_abort("no folder for the stores: %s", strerror(errno));
    struct history h = {.steps = xcalloc((size_t)o.steps + 1, sizeof *h.steps)};
    for (int64_t i = 0; (o.seeds == 0 || i < o.seeds) && status == 0; i++)
        status = try_seed(&o, (uint64_t)(o.seed + i), &h);
    if (made)
        rmdir(made);
    free(h.steps);
    return status;
}
