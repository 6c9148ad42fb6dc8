/* Bounds the size of a job's log. An oversized log keeps its head and its latest output; the
 * middle is cut out and replaced by a line that says so, because a job that prints forever
 * must not fill a shared disk. */
#ifndef SHEPHERD_BEGIN_LOGLIMIT_H
#define SHEPHERD_BEGIN_LOGLIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loglimit {
    int fd;              /* borrowed; -1: nothing to watch */
    off_t begin;         /* offset of this attempt's output */
    int64_t max_bytes;   /* of this attempt's output; 0: no bound */
    int64_t reserve;     /* bytes to keep free on the state's disk */
    bool on_states_disk; /* the log is on that disk too */
    bool is_low;         /* that disk was low at the last look */
    int64_t low_size;    /* size of the log when the disk became low */
    int64_t low_grown;   /* bytes written since then, */
    int64_t last_size;   /* counted from this size on */
    int64_t cut_bytes;   /* total bytes cut */
    off_t moved_at;      /* the last cut: bytes after this offset moved forward */
    int64_t moved_bytes; /* by this much; 0: no cut since the last look */
    int64_t next_us;     /* boot clock: when to look again; 0: never */
};

/* fd: the log; this attempt's output starts at `from`, and the command may have written a lot
 * before this call. folder_fd: a folder on the state's disk. Logs that are not regular files
 * are ignored. */
void loglimit_begin(struct loglimit *l, int fd, off_t from, int folder_fd, int64_t max_mib,
                    int64_t reserve_mib);
/* Checks the size, and cuts the log if it is too large. */
void loglimit_look(struct loglimit *l);
/* Checks for the last time, when nothing writes any more. Returns the total bytes missing. */
int64_t loglimit_end(struct loglimit *l);

#endif
