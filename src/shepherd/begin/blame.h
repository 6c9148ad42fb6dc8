/* Whose trouble it is that a command could not be started. */
#ifndef SHEPHERD_BEGIN_BLAME_H
#define SHEPHERD_BEGIN_BLAME_H

#include <stdbool.h>

#include "sys/exitrec.h"

/* What was being done when a start failed. berth-user reports the number to the supervisor,
 * and during an upgrade the two may be of different versions: append only. */
enum step {
    STEP_OURS,     /* something of Berth's: its programs, its folders, its sockets */
    STEP_ACCOUNT,  /* looking the user up */
    STEP_FOLDER,   /* entering the working folder */
    STEP_LOG,      /* opening the log */
    STEP_ERROR,    /* opening the file for errors, which is always one that the job named */
    STEP_FORK,     /* making a process */
    STEP_CHILD,    /* making that process ready */
    STEP_EXEC,     /* executing the command */
    STEP_PLACE,    /* entering the user's log folder, on which the user can mount anything */
    STEP_TERMINAL, /* making a terminal */
};
#define STEP_LAST STEP_TERMINAL

/* log_is_ours: its place is the instance's, and not one that the job named. errnum: why the
 * step failed; 0: not known. */
enum blame blame_of(bool log_is_ours, enum step step, int errnum);

#endif
