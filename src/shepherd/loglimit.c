/* The size of a log: see loglimit.h. The command writes into the file itself, so nobody stands
 * between to count: the size is looked at, the sooner the less room is left. What is written
 * behind a cut goes to the new end, as logs are opened for appending. Called by attempt.c. */
#include "shepherd/loglimit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define MIB          (INT64_C(1) << 20)
#define LOOK_MIN_US  INT64_C(20000)
#define LOOK_MAX_US  INT64_C(1000000)
#define BYTES_PER_US INT64_C(4000) /* so fast may the fastest writer be */
#define SMALL_BYTES  MIB           /* what every log may have, however full the disk is */

void
loglimit_begin(struct loglimit *l, int fd, int folder_fd, bool interactive, int64_t max_mib,
               int64_t reserve_mib)
{
    struct stat log, folder;

    *l = (struct loglimit){.fd = -1};
    if (fd < 0 || interactive || fstat(fd, &log) < 0 || !S_ISREG(log.st_mode))
        return;
    l->max_bytes = max_mib * MIB;
    l->reserve = reserve_mib * MIB;
    l->on_states_disk = fstat(folder_fd, &folder) == 0 && folder.st_dev == log.st_dev;
    if (l->max_bytes <= 0 && (l->reserve <= 0 || !l->on_states_disk))
        return;
    l->fd = fd;
    l->begin = log.st_size;
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

/* Its first half stays, and from now on what comes. */
static void
cut(struct loglimit *l, int64_t size, int64_t max, bool low)
{
    char line[200];
    int64_t head = max / 2;

    if (ftruncate(l->fd, l->begin + head) < 0)
        return;
    l->cut_bytes += size - head;
    int n = snprintf(line, sizeof line,
                     "\nberth: %lld MiB of output were cut out of this log here: %s\n",
                     (long long)((l->cut_bytes + MIB - 1) / MIB),
                     low ? "the disk that the queue lives on is nearly full (log_reserve_mib)"
                         : "it has reached its largest size (job_log_max_mib)");
    (void)file_write_all(l->fd, line, (size_t)n);
}

static int64_t
clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

void
loglimit_look(struct loglimit *l)
{
    int64_t now = clock_boot_us(), room, disk_room;
    struct stat st;

    if (!l->next_us || now < l->next_us)
        return;
    l->next_us = now + LOOK_MAX_US;
    if (fstat(l->fd, &st) < 0)
        return;
    bool low = disk_is_low(l, &disk_room);
    int64_t size = st.st_size - l->begin;
    int64_t max = low ? SMALL_BYTES : l->max_bytes;
    if (low && l->max_bytes > 0 && l->max_bytes < max)
        max = l->max_bytes;
    if (max > 0 && size > max) {
        cut(l, size, max, low);
        size = max / 2;
    }
    room = l->max_bytes > 0 ? l->max_bytes - size : INT64_MAX;
    room = disk_room < room ? disk_room : room;
    l->next_us = now + clamp(room / BYTES_PER_US, LOOK_MIN_US, LOOK_MAX_US);
}
