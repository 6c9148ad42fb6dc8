/* Starting the job's command. */
#ifndef SHEPHERD_BEGIN_COMMAND_H
#define SHEPHERD_BEGIN_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

#include "sys/exitrec.h"

struct attach;
struct groups;
struct spec;

/* What came of it. Words and errno are for the exit record when pid is -1. */
struct command {
    pid_t pid;
    pid_t screen_pid; /* of its screen session, a child too; 0: there is none */
    int log_fd;       /* the caller closes; -1: was never opened */
    off_t log_from;   /* where this attempt's output begins in it */
    int error_fd;     /* the same of a file for standard error; -1: there is none */
    off_t error_from;
    int64_t boot_us; /* when it was started */
    int setup_fd;    /* of setup.h: how far the set-up came; -1: there is none */
    int mark_fd;     /* of container.h: how far its container came; -1: it has none */
    int errnum;
    enum blame blame; /* whose trouble that is */
    char text[160];
};

#define COMMAND_INIT                                                                           \
    (struct command)                                                                           \
    {                                                                                          \
        .pid = -1, .log_fd = -1, .error_fd = -1, .setup_fd = -1, .mark_fd = -1                 \
    }

/* The value of a variable in an environment; NULL when it is not there. */
const char *command_env(char *const *env, const char *name);

/* Takes on the spec's umask and working folder, opens the log, and starts the command in a
 * session of its own with the started mark in the lock file. attach NULL: the job is
 * not interactive; else its console becomes the command's standard descriptors. */
void command_start(const struct spec *spec, int lock_fd, const struct groups *groups,
                   struct attach *attach, struct command *out);

#endif
