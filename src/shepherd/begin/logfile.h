/* Opening a job's files of output, as the user whose job it is. */
#ifndef SHEPHERD_BEGIN_LOGFILE_H
#define SHEPHERD_BEGIN_LOGFILE_H

#include <stdbool.h>

struct logfile {
    const char *path;
    bool read;      /* also readable: clients are served from it */
    bool truncate;  /* emptied first, if it is a regular file */
    bool own_place; /* it lies where the daemon puts logs, and not where the user chose */
};

/* Open for appending, with close-on-exec; the folders that it is to lie in are made where they
 * are absent: all of them where its user chose the place, else the last. The descriptor is the
 * caller's; -1 with errno. */
int logfile_open(const struct logfile *f);

/* The same file, readable too if it is a regular one that this process may read; then fd has
 * been closed. Its end is looked at when the job has ended, by root, which a file server may
 * let open nothing of a user's. */
int logfile_make_readable(int fd);

/* Of a log in the instance's own place: whether this process may not use
 * that place at all, which is not the job's doing. users_folder: between the place and the log
 * is a folder of the user's own, with which the user may do anything. Leaves errno alone. */
bool logfile_place_is_shut(const char *path, bool users_folder);

#endif
