/* Client input: the bytes are split into lines as the daemon does, each line is parsed as JSON
 * and each object as a job. Any bytes must give an error with a text, or a request within
 * every bound of base/request.h. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/request.h"
#include "spec/selector.h"
#include "wire/frame.h"
#include "wire/request_read.h"

#define LINE_MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool good, const char *what)
{
    if (!good)
        err_abort("%s", what);
}

static void
check_request(const struct request *r)
{
    const struct demand *d = &r->demand;
    require(!r->command != !r->argv, "one of command and argv");
    require(d->gpus >= 0 && d->gpus <= GPU_MAX, "gpus");
    require(d->vram_mib >= 0 && d->vram_mib <= VRAM_MAX_MIB, "vram");
    require(d->n_ids <= REQUEST_IDS_MAX && (!d->n_ids || d->n_ids == d->gpus), "ids");
    require(r->priority >= PRIORITY_MIN && r->priority <= PRIORITY_MAX, "priority");
    require(r->limit_ms >= 0 && r->grace_ms >= -1, "times");
    require(r->retries >= 0 && r->retries <= RETRIES_MAX, "retries");
}

static void
try_job(const json_t *j)
{
    struct request r;
    struct err e = {0};
    if (reqjson_read(j, NULL, NULL, &r, &e) == 0)
        check_request(&r);
    else
        require(e.code != ERR_NONE && e.text[0], "an error without words");
    request_free(&r);
}

static void
try_selector(const char *text)
{
    static const char *const tags[] = {"night", NULL};
    static const struct selector_job job = {7, 5, 3, "name", "user", "FAILED", tags, true};
    struct selector s = SELECTOR_INIT;
    struct err e = {0};
    if (selector_add(&s, text, &e) < 0)
        require(e.text[0], "an error without words");
    else
        selector_matches(&s, &job);
    selector_free(&s);
}

static void
try_line(const char *line, size_t len)
{
    json_t *root = json_loadb(line, len, 0, NULL), *item;
    size_t i;
    if (!root)
        return;
    try_job(root);
    json_array_foreach(json_object_get(json_object_get(root, "params"), "jobs"), i, item)
        try_job(item);
    json_array_foreach(json_object_get(json_object_get(root, "params"), "select"), i, item)
    {
        if (json_is_string(item))
            try_selector(json_string_value(item));
    }
    json_decref(root);
}

/* The first byte sets the size of the pieces in which the rest arrives. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame f;
    size_t piece = size ? data[0] + 1U : 1;
    frame_init(&f, LINE_MAX_BYTES);
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece, from = 0, len;
        char *room = frame_room(&f, n);
        const char *line;
        if (!room)
            break;
        memcpy(room, data + at, n);
        frame_filled(&f, n);
        while ((line = frame_next(&f, &from, &len)))
            try_line(line, len);
        frame_done(&f, from);
    }
    frame_free(&f);
    return 0;
}
