/* Sends many jobs in pieces: see bulk.h. Each of the three buffers holds the inside of an
 * object or a list, without the brackets. */
#include "cli/ask/bulk.h"

#include <string.h>

#include "base/err.h"
#include "wire/client.h"

#define PIECE_JOBS  2000
#define PIECE_BYTES ((size_t)1 << 20)

struct jsonw *
bulk_begin(struct bulk *b, struct client *client, const char *method)
{
    *b = (struct bulk){.client = client, .method = method};
    jsonw_init(&b->w, &b->each);
    return &b->w;
}

struct jsonw *
bulk_job(struct bulk *b)
{
    buf_adds(&b->jobs, b->n > 0 ? ",{" : "{");
    jsonw_init(&b->w, &b->jobs);
    return &b->w;
}

static void
write_piece(const struct bulk *b, bool more, struct buf *out)
{
    buf_reserve(out, b->each.len + b->jobs.len + b->rest.len + 64);
    buf_addc(out, '{');
    if (!b->has_begun)
        buf_adds(out, "\"first\":true,");
    buf_add(out, buf_str(&b->each), b->each.len);
    buf_adds(out, ",\"jobs\":[");
    buf_add(out, buf_str(&b->jobs), b->jobs.len);
    buf_addc(out, ']');
    if (more)
        buf_adds(out, ",\"more\":true");
    if (b->rest.len > 0)
        buf_addc(out, ',');
    buf_add(out, buf_str(&b->rest), b->rest.len);
    buf_addc(out, '}');
}

/* Receives the answer to the previous piece. */
static int
hear(struct bulk *b, struct err *e)
{
    int64_t id = b->asked;

    b->asked = 0;
    return id ? client_call_end(b->client, id, NULL, e) : 0;
}

int
bulk_next(struct bulk *b, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    buf_addc(&b->jobs, '}');
    if (++b->n < PIECE_JOBS && b->jobs.len < PIECE_BYTES)
        return 0;
    write_piece(b, true, &text);
    buf_clear(&b->jobs);
    b->n = 0;
    b->has_begun = true;
    if (hear(b, e) < 0)
        return -1;
    b->asked = client_call_begin(b->client, b->method, text.data, text.len, e);
    return b->asked < 0 ? -1 : 0;
}

struct jsonw *
bulk_rest(struct bulk *b)
{
    jsonw_init(&b->w, &b->rest);
    return &b->w;
}

int
bulk_finish(struct bulk *b, json_t **result, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    if (hear(b, e) < 0)
        return -1;
    write_piece(b, false, &text);
    return client_call_text(b->client, b->method, text.data, text.len, result, e);
}

void
bulk_free(struct bulk *b)
{
    buf_free(&b->each);
    buf_free(&b->jobs);
    buf_free(&b->rest);
}
