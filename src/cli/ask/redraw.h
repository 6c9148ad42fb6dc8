/* Draws a table again whenever jobs or GPUs change: `--watch`. */
#ifndef CLI_ASK_REDRAW_H
#define CLI_ASK_REDRAW_H

struct buf;
struct cli;
struct client;
struct err;
struct term;

/* Appends the table, querying the daemon over c. 0 or -1 with e. */
typedef int (*watch_draw)(void *ctx, struct client *c, const struct term *term, struct buf *out,
                          struct err *e);

/* The option of verbs that support it; its value: SECONDS, or NULL. */
#define WATCH_OPTION                                                                           \
    {                                                                                          \
        "watch", 'w', "[=SECONDS]", "draw it again whenever something happens, until q"        \
    }
/* Parses the option's value. Exit status 2, with an error printed, if it is not a number of
 * seconds; else 0. */
int watch_read_interval(const char *value, int *interval_ms);

/* Draws until the daemon exits or the user presses q or Ctrl-C. On a terminal it draws in
 * place, at least every interval_ms, because times advance; otherwise it prints each table
 * below the last if it differs. Returns the exit status. */
int watch_run(const struct cli *cli, int interval_ms, watch_draw draw, void *ctx);

#endif
