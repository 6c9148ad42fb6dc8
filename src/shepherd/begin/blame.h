/* Which party is charged if a command could not be started. */
#ifndef SHEPHERD_BEGIN_BLAME_H
#define SHEPHERD_BEGIN_BLAME_H

#include <stdbool.h>

#include "sys/exitrec.h"

/* The step that failed. berth-user reports the number to the supervisor, and during an upgrade
 * the two may be of different versions: append only. */
enum step {
    STEP_OURS,     /* Berth's own programs, folders and sockets */
    STEP_ACCOUNT,  /* looking the user up */
    STEP_FOLDER,   /* entering the working folder */
    STEP_LOG,      /* opening the log */
    STEP_ERROR,    /* opening the error file, whose path always comes from the job */
    STEP_FORK,     /* creating a process */
    STEP_CHILD,    /* setting up that process */
    STEP_EXEC,     /* executing the command */
    STEP_PLACE,    /* entering the user's log folder, on which the user can mount anything */
    STEP_TERMINAL, /* making a terminal */
    STEP_NOBODY,   /* looking the user up, who was not found */
};
#define STEP_LAST STEP_NOBODY

/* log_is_ours: the log's path is the instance's default, not chosen by the job. errnum: why
 * the step failed; 0: not known. */
enum blame blame_of(bool log_is_ours, enum step step, int errnum);

#endif
