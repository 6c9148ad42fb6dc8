/* File access on a file system that may never answer, without blocking the caller. */
#ifndef SYS_ASIDE_H
#define SYS_ASIDE_H

#include <stddef.h>
#include <sys/types.h>

/* Runs in its own process, which has only two open descriptors: 0 is the file in question, 1
 * carries the result to the caller. */
typedef void (*aside_fn)(const void *ctx);
#define ASIDE_FILE  0
#define ASIDE_WORDS 1

/* Runs fn on fd and waits at most patience_ms for it to finish. Returns the number of bytes it
 * wrote, of which the first `size` are in out; -1 with errno if no process could be created or
 * it has not ended in time (ETIMEDOUT). A late process is left running: waitpid without
 * __WCLONE does not see it. */
ssize_t aside_run(int fd, aside_fn fn, const void *ctx, int patience_ms, char *out,
                  size_t size);

#endif
