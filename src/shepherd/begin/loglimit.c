/* The size of a log: see loglimit.h. The command writes the file itself, so no process in
 * between can count: the size is checked periodically, the more often the less room is left.
 * After a cut, the command continues at the new end, because logs are opened for appending.
 * Called by attempt.c. */
#include "shepherd/begin/loglimit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/log_cut.h"

#define MIB          (INT64_C(1) << 20)
#define LOOK_MIN_US  INT64_C(20000)
#define LOOK_MAX_US  INT64_C(1000000)
#define BYTES_PER_US INT64_C(4000) /* speed of the fastest expected writer */
#define SMALL_BYTES  MIB           /* what every log may have, even on a full disk */
#define FLOOD_PART   8             /* of the reserve: such growth fills the disk */
#define TAIL_BYTES   (MIB / 4)     /* of the latest output, kept in a cut */
#define TRIES        3             /* to read an end to which nothing is added meanwhile */

void
loglimit_begin(struct loglimit *l, int fd, off_t from, int folder_fd, int64_t max_mib,
               int64_t reserve_mib)
{
    struct stat log, folder;

    *l = (struct loglimit){.fd = -1};
    if (fd < 0 || file_look(fd, &log) < 0 || !S_ISREG(log.st_mode))
        return;
    l->max_bytes = max_mib * MIB;
    l->reserve = reserve_mib * MIB;
    l->on_states_disk = fstat(folder_fd, &folder) == 0 && folder.st_dev == log.st_dev;
    if (l->max_bytes <= 0 && (l->reserve <= 0 || !l->on_states_disk))
        return;
    l->fd = fd;
    l->begin = from;
    l->is_low = true; /* if it is low, all of this log was written since */
    l->next_us = clock_boot_us();
    loglimit_look(l);
}

static bool
disk_is_low(const struct loglimit *l, int64_t *room)
{
    struct statvfs v;

    *room = INT64_MAX;
    if (!l->on_states_disk || l->reserve <= 0 || fstatvfs(l->fd, &v) < 0)
        return false;
    *room = (int64_t)v.f_bavail * (int64_t)v.f_frsize - l->reserve;
    return *room < 0;
}

/* Reopens a write-only log for reading; root may be refused on some file systems. */
static ssize_t
read_at(const struct loglimit *l, char *out, off_t at)
{
    char path[40];
    ssize_t n = pread(l->fd, out, TAIL_BYTES, at);
    if (n >= 0)
        return n;
    snprintf(path, sizeof path, "/proc/self/fd/%d", l->fd);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return pread(fd, out, TAIL_BYTES, at);
}

/* The whole lines at the end of a log of this size; returns their length, 0 if none. */
static size_t
read_tail(const struct loglimit *l, int64_t size, char *tail)
{
    ssize_t n = read_at(l, tail, l->begin + size - TAIL_BYTES);
    const char *first = n > 1 ? memchr(tail, '\n', (size_t)n - 1) : NULL;
    size_t skip = first ? (size_t)(first - tail) + 1 : 0;

    if (n <= 0)
        return 0;
    memmove(tail, tail + skip, (size_t)n - skip);
    return (size_t)n - skip;
}

/* Cuts out the middle. Keeps the head, and also the last lines, because the job may end at any
 * moment. Writes them after the cut in one write, because the command keeps writing. */
static void
cut(struct loglimit *l, int64_t *size, int64_t head, bool low)
{
    auto_free char *text = xmalloc(LOG_CUT_LINE_BYTES + TAIL_BYTES),
                   *tail = xmalloc(TAIL_BYTES);
    size_t kept = 0;
    struct stat now;

    /* Output between the last look and the cut is lost and not counted. */
    for (int i = 0; i < TRIES; i++) {
        kept = read_tail(l, *size, tail);
        if (file_look(l->fd, &now) < 0 || now.st_size - l->begin == *size)
            break;
        *size = now.st_size - l->begin;
    }
    if (ftruncate(l->fd, l->begin + head) < 0)
        return;
    l->cut_bytes += *size - head - (int64_t)kept;
    int n = snprintf(text, LOG_CUT_LINE_BYTES, LOG_CUT_BEGIN "%lld" LOG_CUT_WORDS "%s\n",
                     (long long)((l->cut_bytes + MIB - 1) / MIB),
                     low ? "the disk that the queue lives on is nearly full (log_reserve_mib)"
                         : "it has reached its largest size (log-max, job_log_max_mib)");
    memcpy(text + n, tail, kept);
    (void)file_write_all(l->fd, text, (size_t)n + kept);
    l->moved_at = l->begin + head;
    l->moved_bytes += *size - (head + n + (int64_t)kept);
    *size = head + n + (int64_t)kept;
}

static int64_t
clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

static void
count_growth(struct loglimit *l, bool low, int64_t size)
{
    if (low && !l->is_low) { /* the low state begins */
        l->low_size = l->last_size = size;
        l->low_grown = 0;
    }
    l->is_low = low;
    l->low_grown += size > l->last_size ? size - l->last_size : 0;
}

/* How much of a log to keep on a nearly full disk. Another user or log may have filled it, so
 * earlier output stays, unless this log keeps filling the disk. */
static int64_t
head_when_low(const struct loglimit *l)
{
    bool floods = l->low_grown > l->reserve / FLOOD_PART;
    return floods || l->low_size < SMALL_BYTES / 2 ? SMALL_BYTES / 2 : l->low_size;
}

/* Checks and cuts; returns how much more may be written. */
static int64_t
look(struct loglimit *l)
{
    int64_t room, disk_room;
    struct stat st;

    if (file_look(l->fd, &st) < 0)
        return INT64_MAX;
    bool low = disk_is_low(l, &disk_room);
    int64_t size = st.st_size - l->begin;
    count_growth(l, low, size);
    if (l->max_bytes > 0 && size > l->max_bytes)
        cut(l, &size, l->max_bytes / 2, false);
    if (low && size > head_when_low(l) + SMALL_BYTES / 2)
        cut(l, &size, head_when_low(l), true);
    l->last_size = size;
    room = l->max_bytes > 0 ? l->max_bytes - size : INT64_MAX;
    return disk_room < room ? disk_room : room;
}

void
loglimit_look(struct loglimit *l)
{
    int64_t now = clock_boot_us();

    l->moved_bytes = 0;
    if (!l->next_us || now < l->next_us)
        return;
    l->next_us = now + clamp(look(l) / BYTES_PER_US, LOOK_MIN_US, LOOK_MAX_US);
}

int64_t
loglimit_end(struct loglimit *l)
{
    l->moved_bytes = 0;
    if (l->next_us)
        (void)look(l);
    l->next_us = 0;
    return l->cut_bytes;
}
