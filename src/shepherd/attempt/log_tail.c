/* Reads the end of a log: see log_tail.h. oom.c searches it for messages of CUDA programs,
 * container_outcome.c for podman's. Reading runs in a separate process (aside.h), because the
 * log's file system may hang. */
#include "shepherd/attempt/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "sys/aside.h"

#define PATIENCE_MS 5000

/* Returns 0 at the end of the file, and if it cannot be read. */
static size_t
read_from(int fd, off_t from, char *out)
{
    size_t n = 0;
    while (fd >= 0 && n < LOG_TAIL_BYTES) {
        ssize_t got = pread(fd, out + n, LOG_TAIL_BYTES - n, from + (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

/* A log that its user can read was opened readable. Else it is reopened through its
 * descriptor, which works for a moved file too, but root may be refused. */
static void
read_tail(const void *ctx)
{
    static char tail[LOG_TAIL_BYTES];
    off_t from = *(const off_t *)ctx;
    struct stat st;
    if (fstat(ASIDE_FILE, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    if (from > st.st_size)
        from = 0; /* the job truncated its log */
    if (st.st_size - from > LOG_TAIL_BYTES)
        from = st.st_size - LOG_TAIL_BYTES;
    size_t n = read_from(ASIDE_FILE, from, tail);
    if (n == 0) {
        auto_close int fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
        n = read_from(fd, from, tail);
    }
    (void)file_write_all(ASIDE_WORDS, tail, n);
}

size_t
log_tail_read(int log_fd, off_t from, char *out)
{
    struct stat st;
    if (file_look(log_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    ssize_t n = aside_run(log_fd, read_tail, &from, PATIENCE_MS, out, LOG_TAIL_BYTES);
    return n > 0 ? (size_t)n : 0;
}
