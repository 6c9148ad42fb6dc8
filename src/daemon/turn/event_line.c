/* See event_line.h. Used for stored events and for those that are only sent. */
#include "daemon/turn/event_line.h"

#include "base/buf.h"
#include "base/jsonw.h"
#include "store/store.h"

void
event_line(const struct store_event *row, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "seq", row->seq);
    jsonw_kint(&w, "at_us", row->at_us);
    jsonw_kstr(&w, "kind", row->kind);
    if (row->job)
        jsonw_kint(&w, "job", row->job);
    if (row->file)
        jsonw_kint(&w, "file", row->file);
    if (row->json_len > 2)
        buf_addc(out, ',');
    buf_add(out, row->json + 1, row->json_len - 1);
}
