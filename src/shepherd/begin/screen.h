/* The GNU screen session of a job: --screen. */
#ifndef SHEPHERD_BEGIN_SCREEN_H
#define SHEPHERD_BEGIN_SCREEN_H

#include <sys/types.h>

struct command;
struct last_steps;
struct spec;

/* What the session is made with; all borrowed. */
struct screen_wish {
    const struct spec *spec;
    char *const *env;
    const struct last_steps *last; /* as the command's, but for terminal and mark */
    int cgroup_fd;
    int listen_fd; /* of the attach socket, where its window comes in */
};

/* Starts it, detached, and waits until its window has come: at most 15 seconds. The pid of its
 * process, a child; or -1 with the reason in out, and nothing left of it. */
pid_t screen_start(const struct screen_wish *w, struct command *out);

/* Ends one whose command could not be started. */
void screen_stop(pid_t pid);

/* env as it is in a window of the session. What was made (owned) goes with screen_env_free. */
char **screen_env(char *const *env, pid_t pid, const char *name);
void screen_env_free(char **env);

#endif
