/* Messages between a client and a supervisor of an interactive job, arriving in pieces: any
 * bytes are valid frames, an incomplete frame, or an error, and the frames do not depend on
 * the pieces. Written frames read back unchanged. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/attach_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool good, const char *what)
{
    if (!good)
        err_abort("%s", what);
}

static void
check_frame(const struct attach_frame *f, struct buf *again)
{
    uint64_t offset;
    const char *bytes;
    size_t n;
    uint16_t rows, columns;
    require(f->n <= ATTACH_PAYLOAD_MAX, "a payload above the bound");
    attach_add(again, f->type, f->bytes, f->n);
    if (attach_get_output(f, &offset, &bytes, &n) == 0) {
        require(n + ATTACH_OFFSET_SIZE == f->n, "output of another length");
        char *room = attach_begin_output(again, offset);
        if (n > 0)
            memcpy(room, bytes, n);
        size_t before = again->len;
        attach_end_output(again, n);
        if (n > 0)
            require(memcmp(again->data + before + ATTACH_HEAD_BYTES, f->bytes, f->n) == 0,
                    "output that is not as it was");
        again->len = before;
    }
    if (attach_get_winsize(f, &rows, &columns) == 0) {
        size_t before = again->len;
        attach_add_winsize(again, rows, columns);
        require(memcmp(again->data + before + ATTACH_HEAD_BYTES, f->bytes, 4) == 0,
                "a window that is not as it was");
        again->len = before;
    }
}

/* Reads everything in pieces of this size; writes the frames to out again. */
static int
read_in_pieces(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
    auto_buf struct buf in = BUF_INIT;
    int rc = 0;
    for (size_t at = 0; at < size && rc >= 0; at += piece) {
        struct attach_frame f;
        size_t done = 0;
        buf_add(&in, data + at, size - at < piece ? size - at : piece);
        while ((rc = attach_next(&in, &done, &f)) > 0)
            check_frame(&f, out);
        buf_drop(&in, done);
    }
    return rc;
}

/* The first byte sets the size of the pieces in which the rest arrives. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf once = BUF_INIT;
    auto_buf struct buf pieces = BUF_INIT;
    if (size < 2)
        return 0;
    int a = read_in_pieces(data + 1, size - 1, size, &once);
    int b = read_in_pieces(data + 1, size - 1, data[0] + 1U, &pieces);
    require((a < 0) == (b < 0), "an error only when it comes in pieces");
    require(once.len == pieces.len &&
                (once.len == 0 || memcmp(once.data, pieces.data, once.len) == 0),
            "other frames when they come in pieces");
    require(once.len < size && (once.len == 0 || memcmp(once.data, data + 1, once.len) == 0),
            "frames that are not what was sent");
    return 0;
}
