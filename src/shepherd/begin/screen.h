/* The GNU screen session of a job: --screen. */
#ifndef SHEPHERD_BEGIN_SCREEN_H
#define SHEPHERD_BEGIN_SCREEN_H

#include <sys/types.h>

struct command;
struct last_steps;
struct spec;

/* Input of a start; all borrowed. */
struct screen_wish {
    const struct spec *spec;
    char *const *env;
    const struct last_steps *last; /* as for the command, without terminal and mark */
    int cgroup_fd;
    int listen_fd; /* the attach socket, to which the session's window connects */
};

/* Starts the session, detached, and waits at most 15 s for its window to connect. Returns the
 * pid of screen, a child; or -1 with the reason in out, and nothing left running. */
pid_t screen_start(const struct screen_wish *w, struct command *out);

/* Ends a session whose command could not be started. */
void screen_stop(pid_t pid);

/* env as in a window of the session. Free it with screen_env_free, which frees the new strings
 * too. */
char **screen_env(char *const *env, pid_t pid, const char *name);
void screen_env_free(char **env);

#endif
