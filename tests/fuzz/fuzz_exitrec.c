/* Exit records are stored where a job's user can write, so any content must be refused or
 * parsed literally. A parsed record must read back the same when written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "sys/exitrec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exitrec one, two;
    struct err e;
    if (exitrec_decode((const char *)data, size, &one, &e) < 0)
        return 0;
    if (one.ending.outcome == OUTCOME_EXITED && (one.ending.code < 0 || one.ending.code > 255))
        abort();
    if (!text_is_utf8(one.ending.text, strlen(one.ending.text), NULL))
        abort();
    auto_buf struct buf text = BUF_INIT, again = BUF_INIT;
    exitrec_encode(&one, NULL, &text);
    if (exitrec_decode(text.data, text.len, &two, &e) < 0)
        abort();
    exitrec_encode(&two, NULL, &again);
    if (strcmp(text.data, again.data) != 0)
        abort();
    return 0;
}
