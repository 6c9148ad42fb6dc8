/* How long the commands of a jobs file took, as a daemon remembers it. */
#ifndef CLI_SIMULATE_SIMULATE_HISTORY_H
#define CLI_SIMULATE_SIMULATE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct cli;
struct err;
struct request;

struct past_runs {
    struct past_run {
        char *command; /* owned */
        int64_t id;
        int64_t run_ms;
    } * v; /* owned; by command, then by id */
    size_t n, cap;
};

/* All that completed, from the daemon that the options name; none is started. */
int past_runs_ask(const struct cli *cli, struct past_runs *p, struct err *e);
void past_runs_free(struct past_runs *p);

/* Seconds: the mean of the last two runs of this command; 0: it has not run. For read_jobs,
 * with past a struct past_runs. */
int64_t past_runs_duration(const void *past, const struct request *r);

#endif
