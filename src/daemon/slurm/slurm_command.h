/* One of Slurm's commands as a child process, with a deadline. */
#ifndef DAEMON_SLURM_SLURM_COMMAND_H
#define DAEMON_SLURM_SLURM_COMMAND_H

#include <stdbool.h>
#include <uv.h>

struct buf;
struct err;
struct slurm_command;

/* What it printed, once it has closed its output. late: it was killed at the deadline, with
 * what it had started. */
typedef void (*slurm_done_fn)(void *arg, struct buf *out, struct buf *err, bool late);

/* Starts argv[0] (a path) with that on its standard input (NULL: nothing), in our environment
 * without variables that are options of Slurm's commands. It dies with us. -1: `done` is not
 * called. */
int slurm_start(uv_loop_t *loop, char *const *argv, const struct buf *input, int deadline_ms,
                slurm_done_fn done, void *arg, struct slurm_command **out, struct err *e);

/* Kills it; `done` is not called any more. NULL is fine. */
void slurm_abandon(struct slurm_command *c);

#endif
