/* Starting the job's command. */
#ifndef SHEPHERD_BEGIN_COMMAND_H
#define SHEPHERD_BEGIN_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

#include "sys/exitrec.h"

struct attach;
struct groups;
struct spec;

/* The result of a start. text and errnum go into the exit record if pid is -1. */
struct command {
    pid_t pid;
    pid_t screen_pid; /* of its screen session, also a child; 0: none */
    int log_fd;       /* the caller closes; -1: not opened */
    off_t log_from;   /* offset of this attempt's output in the log */
    int error_fd;     /* the same for standard error's own file; -1: none */
    off_t error_from;
    int64_t boot_us; /* when it was started */
    int setup_fd;    /* progress of the set-up (setup.h); -1: none */
    int mark_fd;     /* progress of the container (container.h); -1: none */
    int errnum;
    enum blame blame; /* who is charged for the failure */
    char text[160];
};

#define COMMAND_INIT                                                                           \
    (struct command)                                                                           \
    {                                                                                          \
        .pid = -1, .log_fd = -1, .error_fd = -1, .setup_fd = -1, .mark_fd = -1                 \
    }

/* The value of an environment variable; NULL if it is not set. */
const char *command_env(char *const *env, const char *name);

/* Applies the spec's umask and working folder, opens the log, and starts the command in its
 * own session, with the started mark in the lock file. attach NULL: the job is not
 * interactive; else its console provides the command's standard descriptors. */
void command_start(const struct spec *spec, int lock_fd, const struct groups *groups,
                   struct attach *attach, struct command *out);

#endif
