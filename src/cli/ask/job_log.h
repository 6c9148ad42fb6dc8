/* Opening a job's log for a caller that may be root. */
#ifndef CLI_ASK_JOB_LOG_H
#define CLI_ASK_JOB_LOG_H

/* Returns a descriptor for reading; -1 with errno, EINVAL if it is not a regular file.
 * Whatever the job's user has put at that path, this opens nothing that the user could not
 * read, and no device or FIFO. user: its name; NULL or "": uses the caller's own rights, which
 * all callers except root always use. */
int joblog_open(const char *path, const char *user);

#endif
