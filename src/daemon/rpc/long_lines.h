/* Parses long request lines into JSON trees in a separate thread: 8 MiB take 0.2 s, which
 * would block the loop. The thread parses one line at a time, and at most one per user waits
 * or is parsed; the loop continues meanwhile. */
#ifndef DAEMON_RPC_LONG_LINES_H
#define DAEMON_RPC_LONG_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "wire/frame.h"

struct budget;
struct long_lines;
struct peers;
struct reading;

/* The result of parsing a line. */
struct parsed {
    json_t *root;    /* owned by the function that takes it; NULL: parsing failed */
    struct err e;    /* code set: refused before parsing; else: */
    char *not_json;  /* owned; the JSON error */
    int64_t took_us; /* CPU time */
};

/* Parses a line in the calling thread, which may be any. */
void line_parse(const struct budget *b, uid_t uid, const char *line, size_t len,
                struct parsed *out);

/* Called in the loop once the line has been parsed. The callee takes over what p owns. */
typedef void (*reading_done_fn)(void *arg, struct parsed *p, size_t len);

/* Create it before the first long line; it ends with the loop's handles. budget (the bounds on
 * a line) and peers (whose shares are charged) are borrowed. */
struct long_lines *long_lines_new(uv_loop_t *loop, const struct budget *budget,
                                  struct peers *peers);
/* Waits for the line being parsed; no parsing happens after this. */
void long_lines_close(struct long_lines *l);
void long_lines_free(struct long_lines *l); /* once the loop has closed its handle */

/* Starts parsing. The line must stay valid until done is called, or until reading_leave.
 * group: the user's group (user_shares.h). NULL: the thread could not be started. */
struct reading *reading_begin(struct long_lines *l, uid_t uid, uid_t group, const char *line,
                              size_t len, reading_done_fn done, void *arg);
/* The client no longer wants the answer: takes over the frame that holds the line and leaves
 * *f empty. If the line is already being parsed, the frame is kept until that is done, and its
 * bytes and time are charged to the group; otherwise it is freed at once. */
void reading_leave(struct long_lines *l, struct reading *r, struct frame *f);
/* True if a line of this group is being parsed or waits to be, even if its client has left. */
bool long_lines_has(struct long_lines *l, uid_t group);

#endif
