/* Runs one of Slurm's commands as a child process, with a deadline. */
#ifndef DAEMON_SLURM_SLURM_COMMAND_H
#define DAEMON_SLURM_SLURM_COMMAND_H

#include <stdbool.h>
#include <uv.h>

struct buf;
struct err;
struct slurm_command;

/* Called with the command's output once it has closed both streams. late: it was killed, with
 * its descendants, at the deadline or because of too much output. */
typedef void (*slurm_done_fn)(void *arg, struct buf *out, struct buf *err, bool late);

/* Starts argv[0] (a path) with input on its standard input (NULL: empty), in our environment
 * without variables that Slurm's commands read as options. It dies with the daemon. -1: `done`
 * is not called. */
int slurm_start(uv_loop_t *loop, char *const *argv, const struct buf *input, int deadline_ms,
                slurm_done_fn done, void *arg, struct slurm_command **out, struct err *e);

/* Kills the command; `done` is not called any more. NULL is fine. */
void slurm_abandon(struct slurm_command *c);

#endif
