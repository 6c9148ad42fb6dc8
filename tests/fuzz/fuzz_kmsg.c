/* A line of the kernel's log: any bytes must give a record that keeps kmsg.h's promises and
 * can be written as JSON, or none. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "gpu/kmsg.h"
#include "gpu/probe_message.h"
#include "gpu/xid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool good, const char *what)
{
    if (!good)
        err_abort("%s", what);
}

static bool
is_printable(const char *s)
{
    for (; *s; s++) {
        if (*s < ' ' || *s > '~')
            return false;
    }
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kmsg_record r;
    struct buf line = BUF_INIT;

    if (kmsg_parse((const char *)data, size, &r) < 0)
        return 0;
    require(r.seq >= 0 && r.pid >= 0 && r.code >= 0, "a negative number");
    require(is_printable(r.text) && is_printable(r.name) && is_printable(r.bus_id),
            "bytes that a terminal acts on");
    require((r.kind == KMSG_XID) == (r.bus_id[0] != '\0'), "an error of no card");
    (void)xid_action_of(r.code, r.text);
    message_faults(&line, r.seq, &r, 1);
    json_t *v = json_loadb(buf_str(&line), line.len, 0, NULL);
    require(v != NULL, "the line is not JSON");
    json_decref(v);
    buf_free(&line);
    return 0;
}
