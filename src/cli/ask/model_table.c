/* Reads a model table with the user's rights; spec/models.h parses it. */
#include "cli/ask/model_table.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "spec/models.h"

#define TABLE_MAX_BYTES (16UL * 1024 * 1024)

struct models *
modeltable_read(const char *path, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    if (file_read(path, TABLE_MAX_BYTES, &text, e) < 0) {
        e->code = ERR_USAGE;
        err_prefix(e, "--models");
        return NULL;
    }
    return models_read(path, buf_str(&text), text.len, e);
}
