/* Names that a job's attempt goes by: its logs, its screen session, its socket. */
#ifndef DAEMON_ATTEMPT_LOG_NAMES_H
#define DAEMON_ATTEMPT_LOG_NAMES_H

struct buf;
struct instance;
struct job;

/* Where a job's output goes: the pattern it asked for, filled in, or the instance's place. Of
 * an array as a whole, which has no output, the pattern of its tasks. The caller frees. */
char *launch_log_path(const struct instance *inst, const struct job *job);
/* Where its standard error goes; NULL: into the log. The caller frees. */
char *launch_error_path(const struct instance *inst, const struct job *job);

/* Appends the name of the screen session of a job that has or had an attempt. */
void launch_screen_name(const struct instance *inst, const struct job *job, struct buf *out);

/* The socket of an interactive job's current attempt; NULL: it is not interactive, or has not
 * been started. The caller frees. */
char *launch_attach_path(const struct instance *inst, const struct job *job);

#endif
