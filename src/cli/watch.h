/* A picture that is drawn again whenever something happened to jobs or cards: `--watch`. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

struct buf;
struct cli;
struct client;
struct err;
struct term;

/* Appends the picture, asking over c. 0 or -1 with e. */
typedef int (*watch_draw)(void *ctx, struct client *c, const struct term *term, struct buf *out,
                          struct err *e);

/* Draws until the daemon goes or somebody presses Ctrl-C. On a terminal in place, once a second
 * at least, because times run; else each picture below the last, when it is another one.
 * Returns the exit status. */
int watch_run(const struct cli *cli, watch_draw draw, void *ctx);

#endif
