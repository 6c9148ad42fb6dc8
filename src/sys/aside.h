/* Asking a file system that may never answer, without waiting for it for ever. */
#ifndef SYS_ASIDE_H
#define SYS_ASIDE_H

#include <stddef.h>
#include <sys/types.h>

/* Runs in a process of its own, which has no other descriptors than these two: 0 is the file in
 * question, 1 takes what the caller is to hear. */
typedef void (*aside_fn)(const void *ctx);
#define ASIDE_FILE  0
#define ASIDE_WORDS 1

/* Runs fn on fd and waits for its end, at most patience_ms. How many bytes it wrote, of which
 * the first size are in out; -1 with errno: there was no process to be had, or it has not ended
 * (ETIMEDOUT). That one is left to itself: waitpid without __WCLONE does not see it. */
ssize_t aside_run(int fd, aside_fn fn, const void *ctx, int patience_ms, char *out,
                  size_t size);

#endif
