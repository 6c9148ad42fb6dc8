/* Reading the end of a log: see log_tail.h. oom.c looks there for what CUDA programs say,
 * container_outcome.c for what podman does. */
#include "shepherd/attempt/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"

size_t
log_tail_read(int log_fd, off_t from, char *out)
{
    char path[64];
    struct stat st;
    /* Opened anew because ours is write-only; this works for a file that was moved, too. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", log_fd);
    if (fstat(log_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (from > st.st_size)
        from = 0; /* the job cut its log */
    if (st.st_size - from > LOG_TAIL_BYTES)
        from = st.st_size - LOG_TAIL_BYTES;
    size_t n = 0;
    while (n < LOG_TAIL_BYTES) {
        ssize_t got = pread(fd, out + n, LOG_TAIL_BYTES - n, from + (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}
