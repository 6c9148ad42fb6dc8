/* A picture that is drawn again whenever something happened to jobs or cards: `--watch`. */
#ifndef CLI_ASK_REDRAW_H
#define CLI_ASK_REDRAW_H

struct buf;
struct cli;
struct client;
struct err;
struct term;

/* Appends the picture, asking over c. 0 or -1 with e. */
typedef int (*watch_draw)(void *ctx, struct client *c, const struct term *term, struct buf *out,
                          struct err *e);

/* The option of every verb that watches, and its value: SECONDS, or NULL. */
#define WATCH_OPTION                                                                           \
    {                                                                                          \
        "watch", 'w', "[=SECONDS]", "draw it again whenever something happens, until q"        \
    }
/* The exit status 2, said why, when that is no number of seconds; else 0. */
int watch_read_interval(const char *value, int *interval_ms);

/* Draws until the daemon ends or the user presses q or Ctrl-C. On a terminal in place, after
 * interval_ms at least, because times run; else each picture below the last, when it is
 * another one. Returns the exit status. */
int watch_run(const struct cli *cli, int interval_ms, watch_draw draw, void *ctx);

#endif
