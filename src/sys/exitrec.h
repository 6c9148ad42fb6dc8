/* The exit record of one attempt. The shepherd notes it in the lock file, writes it to the
 * file `exit` and sends it in its `ended` message; the daemon reads it. It is one JSON object;
 * docs/protocol.md section 4 names the fields. An exit status is never invented: an
 * undecodable record is an error. */
#ifndef SYS_EXITREC_H
#define SYS_EXITREC_H

#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

/* Longest record that is read; written records stay below 2 KiB. */
#define EXITREC_MAX_BYTES 8192

struct buf;
struct err;

/* What is to blame for NOT_STARTED. */
enum blame {
    BLAME_COMMAND, /* the job asks for something impossible */
    BLAME_USER,    /* a problem of this user only: a quota, a disk, a limit on processes */
    BLAME_MACHINE,
    BLAME_MPS,     /* MPS could not be started on the GPU */
    BLAME_CAP,     /* the driver would not enforce the VRAM cap */
    BLAME_ACCOUNT, /* the user was not found: deleted, or the user directory is away */
};

/* Plain value. ending.outcome is one of EXITED SIGNALED TIMEOUT CANCELLED PREEMPTED REQUEUED
 * EXCEEDED LOST NOT_STARTED SETUP_FAILED. ending.code is -1 if there is none (signalled, never
 * started). */
struct exitrec {
    uint32_t job;
    int32_t attempt;
    char boot_id[40];
    int64_t started_us; /* wall clock; 0: the command never started */
    int64_t warned_us;  /* wall clock, when the warning signal was sent; 0: never */
    struct ending ending;
    enum blame blame; /* valid with NOT_STARTED */
    char by[96];      /* the user who cancelled or requeued the job; "" for none */
};

/* Appends one JSON object, without a newline. A non-NULL `event` becomes its first field,
 * "event": the form of the `ended` message. */
void exitrec_encode(const struct exitrec *r, const char *event, struct buf *out);

/* Reads an object of either form. Unknown fields are ignored; a missing or invalid one (a code
 * outside 0..255, a signal outside 1..64, an unknown outcome) is an error. */
int exitrec_decode(const char *json, size_t n, struct exitrec *out, struct err *e);

#define EXITREC_NOTE "ended " /* precedes a record noted in the lock file */

/* The first part of the attempt's lock file, for the started mark and the record, padded with
 * NULs; the spec follows. They share one file because creating and removing files is most of
 * the daemon's cost for a short job. */
#define EXITREC_HEAD_BYTES 4096

/* Offset at which to note the record: after the mark, if there is one. -1 with errno. */
int exitrec_note_offset(int lock_fd);

/* Reads the attempt's record: `exit` in its folder or, if missing, the note in the lock file.
 * 1: found; 0: there is none; -1: unreadable, or another attempt's. After a power loss, a file
 * system without a journal may expose a block's old content. */
int exitrec_read_at(int dirfd, uint32_t job, int32_t attempt, struct exitrec *out,
                    struct err *e);

/* Formats the mark that the shepherd writes to the attempt's lock file just before executing
 * the command: `started PID`, then, on separate lines, the time on the boot clock and the boot
 * id. Returns its length, 0 if it does not fit. Safe after vfork once clock_boot_id was
 * called. */
size_t exitrec_started_mark(int32_t pid, int64_t boot_us, char *out, size_t size);

/* Reads the mark: 1 and *pid; 0: no mark; -1: something else is there. boot_us (may be NULL)
 * becomes the time; -1 if it is missing or of another boot. */
int exitrec_started_at(int dirfd, int32_t *pid, int64_t *boot_us, struct err *e);

#endif
