/* Opening a job's log for a caller that may be root. */
#ifndef CLI_ASK_JOB_LOG_H
#define CLI_ASK_JOB_LOG_H

/* A descriptor for reading; -1 with errno, EINVAL when it is no regular file. Whatever the
 * job's user has put at that path, nothing is opened that the user could not read, no device
 * and no FIFO. user: its name; NULL or "": the caller's own rights count, as they do for every
 * caller but root. */
int joblog_open(const char *path, const char *user);

#endif
