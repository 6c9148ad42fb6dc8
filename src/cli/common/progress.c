/* The progress bar; see progress.h. It uses only "\r" and "erase to the end of the line", so
 * that a resized terminal shows at most one stale bar. */
#include "cli/common/progress.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"

#define BAR_MAX 30
#define BAR_MIN 6

static void
add_counts(const struct progress_counts *c, struct buf *out)
{
    buf_addf(out, "%zu running, %zu pending", c->running, c->waiting);
    if (c->failed)
        buf_addf(out, ", %zu failed", c->failed);
}

/* Adds the remaining time at the present pace, but only once a few jobs have ended. */
static void
add_times(const struct progress_counts *c, int64_t elapsed_ms, struct buf *out)
{
    size_t ended = c->done - c->done_at_begin;
    size_t left = c->total - c->done;
    char span[24];

    buf_addf(out, "  %s", format_duration(elapsed_ms, span));
    if (ended >= 3 && left > 0)
        buf_addf(out, ", about %s left",
                 format_duration(elapsed_ms * (int64_t)left / (int64_t)ended, span));
}

static void
add_bar(const struct progress_counts *c, int width, struct buf *out)
{
    size_t full = c->total ? (size_t)width * c->done / c->total : 0;
    size_t busy = c->total ? (size_t)width * (c->done + c->running) / c->total : 0;

    buf_addc(out, '[');
    for (size_t i = 0; i < (size_t)width; i++)
        buf_addc(out, i < full ? '#' : i < busy ? '-' : ' ');
    buf_adds(out, "] ");
}

void
progress_format(const struct progress_counts *c, int64_t elapsed_ms, int columns,
                struct buf *out)
{
    auto_buf struct buf head = BUF_INIT;
    auto_buf struct buf tail = BUF_INIT;
    auto_buf struct buf line = BUF_INIT;
    int room;

    if (columns < 2)
        return;
    buf_addf(&head, "%zu/%zu ", c->done, c->total);
    add_counts(c, &tail);
    add_times(c, elapsed_ms, &tail);
    /* The last column stays empty, because some terminals wrap after writing to it. */
    room = columns - 1 - (int)(head.len + tail.len) - 3;
    buf_adds(&line, buf_str(&head));
    if (room >= BAR_MIN)
        add_bar(c, room > BAR_MAX ? BAR_MAX : room, &line);
    buf_adds(&line, buf_str(&tail));
    text_add_safe(out, line.data, line.len, columns - 1);
}

void
progress_draw(struct progress *p, const struct progress_counts *c, int64_t now_us,
              struct buf *out)
{
    if (!p->on)
        return;
    buf_adds(out, "\r");
    progress_format(c, (now_us - p->begun_us) / 1000, p->columns, out);
    buf_adds(out, "\033[K");
    p->drawn = true;
}

void
progress_erase(struct progress *p, struct buf *out)
{
    if (!p->drawn)
        return;
    buf_adds(out, "\r\033[K");
    p->drawn = false;
}
