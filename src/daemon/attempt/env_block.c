/* Blocks of variables: see env_block.h. Used by the three files that make a
 * job's environment. */
#include "daemon/attempt/env_block.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"

void
envblock_put(struct buf *out, const char *name, const char *value)
{
    buf_addzf(out, "%s=%s", name, value);
}

void
envblock_put_int(struct buf *out, const char *name, int64_t value)
{
    buf_addzf(out, "%s=%" PRId64, name, value);
}

const char *
envblock_find(const struct buf *block, const char *name)
{
    size_t n = strlen(name), left = block->len;
    for (const char *p = block->data; left > 0;) {
        size_t len = strlen(p) + 1;
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
        p += len;
        left -= len;
    }
    return NULL;
}
