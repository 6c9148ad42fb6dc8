/* The kernel's log: see kernlog.h. /dev/kmsg returns one record per read, from the oldest that
 * still exists; the kernel skips a record that was overwritten during the read (EPIPE).
 * Simulated GPUs have a plain file with the same lines, to which a test appends.
 *
 * Drivers repeat themselves by the thousand (XID 45): a message equal to an earlier one since
 * the driver was loaded is dropped, as are messages beyond FAULTS_MAX per report. */
#include "probe/kernlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "gpu/kmsg.h"
#include "gpu/probe_message.h"

#define RECORD_MAX  8192 /* the kernel's maximum per read */
#define FAULTS_MAX  4096
#define FAULTS_LINE 64 /* per line to the daemon */

struct kernlog {
    char *path;
    int fd;        /* -1: not readable (yet) */
    bool is_plain; /* a regular file, for which poll always reports ready */
    bool fresh;    /* existing records are to be ignored */
    int64_t seq;
    struct buf part; /* an incomplete line */
    int n, n_before; /* n_before: those before the driver was last loaded */
    size_t cap;
    struct kmsg_record *found;
};

static void
open_log(struct kernlog *k)
{
    struct stat st;

    k->fd = open(k->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (k->fd >= 0 && fstat(k->fd, &st) == 0)
        k->is_plain = S_ISREG(st.st_mode);
}

/* For these codes the text decides: whether the error is fatal, or what the driver asks
 * for. */
static bool
text_decides(int32_t code)
{
    return (code >= 144 && code <= 150) || code == 154;
}

static bool
says_the_same(const struct kmsg_record *a, const struct kmsg_record *b)
{
    return a->kind == b->kind && a->code == b->code && a->pid == b->pid && a->gi == b->gi &&
           a->ci == b->ci && strcmp(a->bus_id, b->bus_id) == 0 &&
           (!text_decides(a->code) || strcmp(a->text, b->text) == 0);
}

static void
take_line(struct kernlog *k, const char *line, size_t n)
{
    struct kmsg_record r;

    if (kmsg_parse(line, n, &r) < 0)
        return;
    bool is_known = r.seq <= k->seq || k->fresh;
    if (r.seq > k->seq)
        k->seq = r.seq;
    if (is_known || r.kind == KMSG_OTHER || k->n == FAULTS_MAX)
        return;
    for (int i = k->n_before; i < k->n; i++) {
        if (says_the_same(&k->found[i], &r))
            return;
    }
    k->found = xgrow(k->found, k->n, &k->cap, sizeof *k->found);
    k->found[k->n++] = r;
    if (r.kind == KMSG_DRIVER)
        k->n_before = k->n - 1;
}

static void
take_lines(struct kernlog *k, const char *bytes, size_t n)
{
    const char *newline;

    buf_add(&k->part, bytes, n);
    while (k->part.len > 0 && (newline = memchr(k->part.data, '\n', k->part.len))) {
        size_t length = (size_t)(newline - k->part.data);
        take_line(k, k->part.data, length);
        buf_drop(&k->part, length + 1);
    }
    if (k->part.len > RECORD_MAX)
        buf_clear(&k->part);
}

/* Reads all there is. Continues after an interrupted read or an overwritten record. */
static void
drain(struct kernlog *k)
{
    char bytes[RECORD_MAX];

    if (k->fd < 0)
        open_log(k);
    while (k->fd >= 0) {
        ssize_t n = read(k->fd, bytes, sizeof bytes);
        if (n > 0)
            take_lines(k, bytes, (size_t)n);
        else if (n == 0 || (errno != EINTR && errno != EPIPE))
            break;
    }
    k->fresh = false;
}

struct kernlog *
kernlog_open(const char *path, int64_t after)
{
    struct kernlog *k = xcalloc(1, sizeof *k);

    k->path = xstrdup(path);
    k->seq = after;
    k->fresh = after < 0;
    k->fd = -1;
    drain(k);
    return k;
}

void
kernlog_close(struct kernlog *k)
{
    if (!k)
        return;
    if (k->fd >= 0)
        close(k->fd);
    buf_free(&k->part);
    free(k->found);
    free(k->path);
    free(k);
}

int
kernlog_poll_fd(const struct kernlog *k)
{
    return k->is_plain ? -1 : k->fd;
}

int64_t
kernlog_position(const struct kernlog *k)
{
    return k->fd < 0 ? -1 : k->seq;
}

void
kernlog_report(struct kernlog *k, struct buf *out)
{
    drain(k);
    for (int at = 0, n; at < k->n; at += n) {
        n = k->n - at < FAULTS_LINE ? k->n - at : FAULTS_LINE;
        bool is_last = at + n == k->n;
        message_faults(out, is_last ? k->seq : k->found[at + n - 1].seq, &k->found[at], n);
    }
    k->n = k->n_before = 0;
}
