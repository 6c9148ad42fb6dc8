/* The end of a job's log. */
#ifndef SHEPHERD_ATTEMPT_LOG_TAIL_H
#define SHEPHERD_ATTEMPT_LOG_TAIL_H

#include <stddef.h>
#include <sys/types.h>

#define LOG_TAIL_BYTES 16384

/* Reads the output after `from`, or the end of it, into out (LOG_TAIL_BYTES long). Returns the
 * length; 0 if there is none, or the log is not a regular file. */
size_t log_tail_read(int log_fd, off_t from, char *out);

#endif
