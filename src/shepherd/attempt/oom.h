/* Recognising from its log that a job ran out of GPU memory. */
#ifndef SHEPHERD_ATTEMPT_OOM_H
#define SHEPHERD_ATTEMPT_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Looks for one of the patterns (ASCII case folded, NULL-terminated list) in the last 16 KiB
 * that were written to the log after byte `from`. log_fd may be write-only. When found, text
 * becomes the last line that has one, made safe for a terminal, at most 150 bytes. */
bool oom_find_in_log(int log_fd, off_t from, char *const *patterns, char *text, size_t size);

#endif
