/* Names derived from a job: its logs, screen session and socket. */
#ifndef DAEMON_ATTEMPT_LOG_NAMES_H
#define DAEMON_ATTEMPT_LOG_NAMES_H

struct buf;
struct instance;
struct job;

/* Path of the job's log: the pattern it requested, filled in, or the instance's default. An
 * array as a whole has no output: the pattern of its tasks. The caller frees. */
char *launch_log_path(const struct instance *inst, const struct job *job);
/* Path for standard error; NULL: into the log. The caller frees. */
char *launch_error_path(const struct instance *inst, const struct job *job);

/* Appends the name of the screen session; the job must have or have had an attempt. */
void launch_screen_name(const struct instance *inst, const struct job *job, struct buf *out);

/* Path of the socket of an interactive job's current attempt; NULL: the job is not interactive
 * or has not started. The caller frees. */
char *launch_attach_path(const struct instance *inst, const struct job *job);

#endif
