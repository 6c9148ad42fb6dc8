/* Drawing again and again; see watch.h. Follows the daemon's events and asks for the picture
 * anew when one came, at most ten times a second. */
#include "cli/watch.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/term.h"
#include "wire/client.h"

#define REDRAW_MS 1000 /* of a terminal, when nothing happens */
#define SETTLE_MS 100  /* after an event others often follow */

static void
on_event(void *ctx, const char *method, json_t *params)
{
    bool *changed = ctx;

    (void)method;
    (void)params;
    *changed = true;
}

/* In place: from the top left, each line cut off behind its end, and what was below cleared; no
 * more lines than there are, because the rest would scroll. */
static void
add_screen(struct buf *out, const struct buf *picture)
{
    const char *at = picture->data;
    const char *end = picture->data + picture->len;

    buf_adds(out, "\033[H");
    for (int left = term_rows() - 1; at < end && left > 0; left--) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t n = eol ? (size_t)(eol - at) : (size_t)(end - at);

        buf_add(out, at, n);
        buf_adds(out, "\033[K\n");
        at += n + 1;
    }
    buf_adds(out, "\033[J");
}

static int
put_picture(const struct term *term, const struct buf *picture, struct buf *last)
{
    auto_buf struct buf out = BUF_INIT;

    if (term->tty) {
        add_screen(&out, picture);
        return cli_put(&out);
    }
    if (picture->len == last->len &&
        (picture->len == 0 || memcmp(picture->data, last->data, picture->len) == 0))
        return 0;
    if (last->len)
        buf_addc(&out, '\n');
    buf_add(&out, picture->data, picture->len);
    buf_clear(last);
    buf_add(last, picture->data, picture->len);
    return cli_put(&out);
}

/* Until something happens; on a terminal not longer than times may stand still, and once more
 * where something just did: that a job which starts has come to run is no event of its own. */
static int
wait_for_change(struct client *c, const struct term *term, bool *changed, bool *again,
                struct err *e)
{
    if (client_pump(c, e) < 0)
        return -1;
    if (!*changed && client_wait(c, term->tty || *again ? REDRAW_MS : -1, e) < 0)
        return -1;
    if (*changed && client_wait(c, SETTLE_MS, e) < 0)
        return -1;
    *again = *changed;
    *changed = false;
    return 0;
}

static int
follow(struct client *c, struct err *e)
{
    json_t *params = json_pack("{s:i,s:b}", "since", 0, "follow", 1);

    return client_call(c, "events", params, NULL, e);
}

int
watch_run(const struct cli *cli, watch_draw draw, void *ctx)
{
    struct err e = {0};
    auto_client struct client *c = connect_daemon(cli, &e);
    auto_buf struct buf last = BUF_INIT;
    bool changed = false;
    bool again = false;

    if (!c)
        return cli_fail(&e);
    client_listen(c, on_event, NULL, &changed);
    if (follow(c, &e) < 0)
        return cli_fail(&e);
    if (term_rows())
        (void)cli_write("\033[2J", 4);
    for (;;) {
        auto_buf struct buf picture = BUF_INIT;
        struct term term = term_of_stdout();
        int status;

        if (draw(ctx, c, &term, &picture, &e) < 0)
            return cli_fail(&e);
        status = put_picture(&term, &picture, &last);
        if (status != 0 || cli_output_status() != 0)
            return status;
        if (wait_for_change(c, &term, &changed, &again, &e) < 0)
            return cli_fail(&e);
    }
}
