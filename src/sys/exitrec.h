/* The exit record of one attempt: what the shepherd notes in the lock file, writes to the file
 * `exit`, says in its `ended` message, and the daemon reads back. One JSON object;
 * docs/protocol.md section 4 names the fields. An exit status is never invented: what does not
 * decode is an error. */
#ifndef SYS_EXITREC_H
#define SYS_EXITREC_H

#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

/* Longest record that is read; written ones stay below 2 KiB. */
#define EXITREC_MAX_BYTES 8192

struct buf;
struct err;

/* Whose trouble it was that a command was NOT_STARTED. */
enum blame {
    BLAME_COMMAND, /* what the job asked for cannot be done */
    BLAME_USER,    /* something that only its user lacks: a quota, a disk, processes */
    BLAME_MACHINE,
    BLAME_MPS, /* MPS could not be started on its card */
    BLAME_CAP, /* its cards' driver would not hold it to its VRAM */
};

/* Plain value. ending.outcome is one of EXITED SIGNALED TIMEOUT CANCELLED PREEMPTED REQUEUED
 * EXCEEDED LOST NOT_STARTED SETUP_FAILED.
 * ending.code is -1 where there was none (signalled, never started). */
struct exitrec {
    uint32_t job;
    int32_t attempt;
    char boot_id[40];
    int64_t started_us; /* wall clock; 0: the command never started */
    int64_t warned_us;  /* wall clock, when the warning signal was sent; 0: it was not */
    struct ending ending;
    enum blame blame; /* with NOT_STARTED */
    char by[96];      /* the user who cancelled, or requeued; "" for none */
};

/* Appends one JSON object, no line end. With `event` non-NULL that becomes its first field,
 * "event": the form of the `ended` message. */
void exitrec_encode(const struct exitrec *r, const char *event, struct buf *out);

/* Reads an object of either form. Unknown fields are ignored; a missing or impossible one
 * (a code outside 0..255, a signal outside 1..64, an unknown outcome) is an error. */
int exitrec_decode(const char *json, size_t n, struct exitrec *out, struct err *e);

#define EXITREC_NOTE "ended " /* in front of a record that stands in the lock file */

/* So much of the attempt's lock file is for the started mark and the record, with NUL behind
 * them; after that stands what is to run. One file for both: making and removing files is most
 * of what a short job costs the daemon. */
#define EXITREC_HEAD_BYTES 4096

/* Where the record is to be noted: behind the mark, if there is one. -1 with errno. */
int exitrec_note_offset(int lock_fd);

/* Reads the attempt's record: `exit` in its folder or, where there is none, what is noted in
 * the lock file. 1 found, 0 there is none, -1 it is unreadable or another attempt's: after a
 * loss of power a file system without a journal may show what a block held before. */
int exitrec_read_at(int dirfd, uint32_t job, int32_t attempt, struct exitrec *out,
                    struct err *e);

/* The mark that the shepherd leaves in the attempt's lock file just before the command is
 * executed: `started PID`, then on lines of their own when, on the boot clock, and in which
 * boot. Its length, 0 when it does not fit. Safe after vfork once clock_boot_id was called. */
size_t exitrec_started_mark(int32_t pid, int64_t boot_us, char *out, size_t size);

/* Reads it back: 1 and *pid, 0 no such mark, -1 error (something else stands there). boot_us
 * (may be NULL) becomes the time; -1 where it is not said or is of another boot. */
int exitrec_started_at(int dirfd, int32_t *pid, int64_t *boot_us, struct err *e);

#endif
