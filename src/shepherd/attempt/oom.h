/* Detects from a job's log that it ran out of GPU memory. */
#ifndef SHEPHERD_ATTEMPT_OOM_H
#define SHEPHERD_ATTEMPT_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Searches the last 16 KiB of the log after byte `from` for one of the patterns (ignoring
 * ASCII case, NULL-terminated list). log_fd may be write-only. On a match, text becomes the
 * last matching line, made safe for a terminal, at most 150 bytes. */
bool oom_find_in_log(int log_fd, off_t from, char *const *patterns, char *text, size_t size);

#endif
