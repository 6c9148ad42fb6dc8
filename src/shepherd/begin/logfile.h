/* Opening a job's output files, as the job's user. */
#ifndef SHEPHERD_BEGIN_LOGFILE_H
#define SHEPHERD_BEGIN_LOGFILE_H

#include <stdbool.h>

struct logfile {
    const char *path;
    bool read;      /* also readable, to serve clients from it */
    bool truncate;  /* truncated first, if it is a regular file */
    bool own_place; /* its path is the daemon's default, not chosen by the user */
};

/* Opens for appending, with close-on-exec, and makes missing folders: all of them if the user
 * chose the path, else only the last. The caller owns the descriptor; -1 with errno. */
int logfile_open(const struct logfile *f);

/* Reopens the file readable, if it is a regular file that this process may read, and closes
 * fd; else returns fd. Root reads the log's end after the job, when a file server may not let
 * root open a user's file. */
int logfile_make_readable(int fd);

/* For a log at the default path: true if this process cannot use the log place at all, which
 * is not the job's fault. users_folder: between the place and the log is a folder that belongs
 * to the user and is the user's to change. Preserves errno. */
bool logfile_place_is_shut(const char *path, bool users_folder);

#endif
