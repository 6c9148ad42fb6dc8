/* How large a job's log may become. One that has too much keeps its head and what came last:
 * what lies between is cut out, and a line says so, because a job that prints for ever must not
 * fill a disk that others live on. */
#ifndef SHEPHERD_BEGIN_LOGLIMIT_H
#define SHEPHERD_BEGIN_LOGLIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loglimit {
    int fd;              /* borrowed; -1: nothing is looked after */
    off_t begin;         /* where this attempt's output begins */
    int64_t max_bytes;   /* of it; 0: any number */
    int64_t reserve;     /* bytes that stay free on the state's disk */
    bool on_states_disk; /* the log lies there as well */
    bool is_low;         /* that disk, when it was last looked at */
    int64_t low_size;    /* of the log when it became so */
    int64_t low_grown;   /* bytes written since then, */
    int64_t last_size;   /* counted from this size on */
    int64_t cut_bytes;   /* in all */
    off_t moved_at;      /* the last cut: what followed here lies further in front now, */
    int64_t moved_bytes; /* by so much; 0: nothing has been cut since the last look */
    int64_t next_us;     /* boot clock: when to look again; 0: never */
};

/* fd: the log, of whose bytes those from `from` on are this attempt's: the command may have
 * written a lot before this is called. folder_fd: a folder on the state's disk. Logs that are
 * no regular files are left alone. */
void loglimit_begin(struct loglimit *l, int fd, off_t from, int folder_fd, int64_t max_mib,
                    int64_t reserve_mib);
/* Looks, and cuts if there is too much. */
void loglimit_look(struct loglimit *l);
/* For the last time, as nothing writes any more. How much is missing in all, in bytes. */
int64_t loglimit_end(struct loglimit *l);

#endif
