/* Long lines become JSON trees in a thread of their own: 8 MiB take 0.2 s, for which the loop
 * would serve nobody. One at a time, and one of each user; the loop goes on meanwhile. */
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

/* What became of a line. */
struct parsed {
    json_t *root;    /* owned by the function that takes it; NULL: it is none */
    struct err e;    /* refused before it was read, with a code, or else: */
    char *not_json;  /* owned: what is wrong with it */
    int64_t took_us; /* of CPU */
};

/* In this thread, or any other. */
void line_parse(const struct budget *b, uid_t uid, const char *line, size_t len,
                struct parsed *out);

/* In the loop, once the line has been read; p is its to take over. */
typedef void (*reading_done_fn)(void *arg, struct parsed *p, size_t len);

/* Before the first long line; ends with the loop's handles. Borrowed: the bounds on a line, and
 * the users whose lines are read. */
struct long_lines *long_lines_new(uv_loop_t *loop, const struct budget *budget,
                                  struct peers *peers);
/* Waits for what is being read; no reading is done after this. */
void long_lines_close(struct long_lines *l);
void long_lines_free(struct long_lines *l); /* when the loop has closed its handle */

/* Begins to read; the line must stay until it is done, or reading_leave. group: that the user
 * counts in (user_shares.h). NULL: there is no thread for it. */
struct reading *reading_begin(struct long_lines *l, uid_t uid, uid_t group, const char *line,
                              size_t len, reading_done_fn done, void *arg);
/* The client no longer wants the answer: takes the frame that holds the line; *f is empty
 * afterwards. A line that is being read stays until it has been: its bytes and its time count
 * for its group. Any other one is forgotten at once. */
void reading_leave(struct long_lines *l, struct reading *r, struct frame *f);
/* Whether a line of this group is being read or waits for that, even without its client. */
bool long_lines_has(struct long_lines *l, uid_t group);

#endif
