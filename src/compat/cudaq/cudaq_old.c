/* Replaced versions of the jobs file. A program that had one open, to append a record, may
 * still write into it: each is kept open and checked until no writer is left, and new records
 * are carried over. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "compat/cudaq/cudaq.h"
#include "compat/engine/line_records.h"
#include "wire/client.h"

#define ABOUT_US    200000 /* for a program that was about to open it when it lost its name */
#define LOOK_PART   4
#define LOOK_MIN_US 50000
#define LOOK_MAX_US 1000000
#define READ_CHUNK  65536

int
cq_read_from(int fd, off_t from, struct buf *out)
{
    ssize_t n;

    do {
        buf_reserve(out, READ_CHUNK);
        n = pread(fd, out->data + out->len, READ_CHUNK, from);
        if (n > 0) {
            out->len += (size_t)n;
            from += n;
        }
    } while (n > 0 || (n < 0 && errno == EINTR));
    out->data[out->len] = '\0';
    return n < 0 ? -1 : 0;
}

/* Read the last bytes before read_to; 0: cannot be read. */
static size_t
read_before(int fd, off_t read_to, char *out)
{
    size_t n = read_to < CQ_OLD_BEFORE ? (size_t)read_to : CQ_OLD_BEFORE;

    return pread(fd, out, n, read_to - (off_t)n) == (ssize_t)n ? n : 0;
}

/* True if the file was rewritten rather than appended to. */
static bool
is_rewritten(const struct cq_old *o)
{
    char now[CQ_OLD_BEFORE];

    return read_before(o->fd, o->read_to, now) != o->n_before ||
           memcmp(now, o->before, o->n_before) != 0;
}

/* True for a complete record. */
static bool
is_record(const char *text, size_t n)
{
    auto_json json_t *value = json_loadb(text, n, 0, NULL);

    return json_is_object(value);
}

/* Carry over whole lines, and an incomplete last one once no writer is left. A rewritten file
 * replaces ours, as it would have done a moment later. */
static void
carry_over(struct cudaq *q, struct cq_old *o, bool is_done)
{
    auto_buf struct buf more = BUF_INIT;
    bool anew = is_rewritten(o);
    const char *nl;
    size_t n;

    if ((anew && !is_done) || cq_read_from(o->fd, anew ? 0 : o->read_to, &more) < 0)
        return;
    if (anew) {
        (void)records_replace(q->config.jobs_file, more.data, more.len, true, NULL);
        return;
    }
    nl = more.len > 0 ? memrchr(more.data, '\n', more.len) : NULL;
    n = nl ? (size_t)(nl - more.data) + 1 : 0;
    if (is_done || is_record(more.data + n, more.len - n))
        n = more.len;
    if (n == 0)
        return;
    cq_jobs_add(q, more.data, n);
    o->read_to += (off_t)n;
    o->n_before = read_before(o->fd, o->read_to, o->before);
}

static void
drop(struct cudaq *q, int i)
{
    close(q->old[i].fd);
    q->n_old--;
    memmove(&q->old[i], &q->old[i + 1], sizeof q->old[0] * (size_t)(q->n_old - i));
}

/* Check soon at first, and less often the longer a program keeps the file open. */
static void
look_again(struct cudaq *q, const struct cq_old *o, int64_t now)
{
    int64_t pause = (now - o->since_us) / LOOK_PART;

    pause = pause < LOOK_MIN_US ? LOOK_MIN_US : pause < LOOK_MAX_US ? pause : LOOK_MAX_US;
    if (!q->old_due_us || now + pause < q->old_due_us)
        q->old_due_us = now + pause;
}

void
cq_old_look(struct cudaq *q)
{
    int64_t now = clock_boot_us();

    q->old_due_us = 0;
    for (int i = q->n_old - 1; i >= 0; i--) {
        struct cq_old *o = &q->old[i];
        bool is_done = now >= o->since_us + ABOUT_US && !file_has_writers(o->fd);

        carry_over(q, o, is_done);
        if (is_done)
            drop(q, i);
        else
            look_again(q, o, now);
    }
}

/* The file to drop if there are too many: the oldest without a writer. */
static int
choose_victim(const struct cudaq *q)
{
    for (int i = 0; i < q->n_old; i++) {
        if (!file_has_writers(q->old[i].fd))
            return i;
    }
    return 0;
}

void
cq_old_keep(struct cudaq *q, int fd, off_t read_to)
{
    int64_t now = clock_boot_us();
    struct cq_old *o;

    if (q->n_old == CQ_OLD_MAX) {
        int victim = choose_victim(q);

        carry_over(q, &q->old[victim], true);
        drop(q, victim);
    }
    o = &q->old[q->n_old++];
    *o = (struct cq_old){.fd = fd, .read_to = read_to, .since_us = now};
    o->n_before = read_before(fd, read_to, o->before);
    carry_over(q, o, false);
    look_again(q, o, now);
}
