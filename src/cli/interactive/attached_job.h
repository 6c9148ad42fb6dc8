/* A non-blocking connection to the supervisor of an interactive job (docs/protocol.md section
 * 5), with its received and queued bytes. interactive.c polls it. */
#ifndef CLI_INTERACTIVE_ATTACHED_JOB_H
#define CLI_INTERACTIVE_ATTACHED_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

struct attached {
    int fd; /* -1: not connected */
    struct buf in;
    struct buf out;
    size_t sent;      /* of out */
    struct buf shown; /* the job's output, for standard output */
    bool greeted;     /* the supervisor has greeted us: it accepts input */
    bool pty;
    int64_t next;  /* log offset after the last received byte; -1: none received */
    json_t *ended; /* the exit record, which comes last; may be NULL */
    char *refused; /* the supervisor's error message; may be NULL */
};

/* Where the output should begin: at offset (>= 0), else tail bytes before the end (>= 0), else
 * at the beginning of the attempt's output. */
struct attached_wish {
    int64_t offset;
    int64_t tail;
    bool input;
    uint16_t rows, columns; /* 0: no terminal */
};

void attached_init(struct attached *a);
/* Closes only the connection: received bytes and next stay. */
void attached_close(struct attached *a);
void attached_free(struct attached *a);

/* ERR_UNREACHABLE if nothing listens there, ERR_PERMISSION if the socket is not for this
 * user. */
int attached_connect(struct attached *a, const char *path, const struct attached_wish *wish,
                     struct err *e);

/* Reads once. False: the connection has ended. */
bool attached_read(struct attached *a);

/* Queues input for the job; attached_has_room says whether to queue more now. */
bool attached_has_room(const struct attached *a);
void attached_put(struct attached *a, const char *bytes, size_t n);
void attached_put_eof(struct attached *a);
void attached_put_size(struct attached *a, uint16_t rows, uint16_t columns);
/* Sends as much of the queue as possible. False: the connection has ended. */
bool attached_flush(struct attached *a);

#endif
