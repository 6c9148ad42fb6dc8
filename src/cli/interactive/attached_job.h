/* A connection to the shepherd of an interactive job (docs/protocol.md section 5): what came
 * and what is to go, without ever waiting. interactive.c polls for it. */
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
    struct buf shown; /* of the job, for standard output */
    bool greeted;     /* by the shepherd: input is welcome */
    bool pty;
    int64_t next;  /* the log's offset behind the last byte that came; -1: none has */
    json_t *ended; /* the exit record, which comes last; NULL */
    char *refused; /* the shepherd's words; NULL */
};

/* What is asked for in the beginning: at an offset (>= 0), else so many bytes before the end
 * (>= 0), else where the attempt's output begins. */
struct attached_wish {
    int64_t offset;
    int64_t tail;
    bool input;
    uint16_t rows, columns; /* 0: no terminal */
};

void attached_init(struct attached *a);
/* Only the connection: what it brought stays, next too. */
void attached_close(struct attached *a);
void attached_free(struct attached *a);

/* ERR_UNREACHABLE when nothing listens there, ERR_PERMISSION when it is not for us. */
int attached_connect(struct attached *a, const char *path, const struct attached_wish *wish,
                     struct err *e);

/* Takes what has arrived, one read. false: the connection is over. */
bool attached_read(struct attached *a);

/* Queues for the job; room says whether more of it makes sense now. */
bool attached_has_room(const struct attached *a);
void attached_put(struct attached *a, const char *bytes, size_t n);
void attached_put_eof(struct attached *a);
void attached_put_size(struct attached *a, uint16_t rows, uint16_t columns);
/* Sends what is queued, as far as it goes. false: the connection is over. */
bool attached_flush(struct attached *a);

#endif
