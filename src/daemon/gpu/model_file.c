/* Caches the table of models; see model_file.h. The path is set by the administrator, not by a
 * user, so the daemon may open it. Checked with one stat per request that contains jobs:
 * cheaper than a watch, and it notices files that an editor replaces. */
#include "daemon/gpu/model_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "spec/config.h"
#include "spec/models.h"

#define TABLE_MAX_BYTES (16UL * 1024 * 1024)

struct modelfile {
    struct models *table; /* the last valid one; NULL: none yet */
    struct stat mark;     /* the file when last checked; all 0: missing */
    bool looked;
};

static void
read_table(struct modelfile *f, const char *path)
{
    auto_buf struct buf text = BUF_INIT;
    struct models *table = NULL;
    struct err e = {0};

    if (file_read(path, TABLE_MAX_BYTES, &text, &e) == 0)
        table = models_read(path, buf_str(&text), text.len, &e);
    if (!table) {
        log_warn("setting=models %s; %s", e.text,
                 f->table ? "the last valid table stays in use" : "no model is known");
        return;
    }
    models_free(f->table);
    f->table = table;
    log_info("setting=models %s: %zu models", path, models_count(table));
}

struct modelfile *
modelfile_new(void)
{
    return xcalloc(1, sizeof(struct modelfile));
}

const struct models *
modelfile_current(struct modelfile *f, const struct config *c)
{
    struct stat now;

    if (!c->models || !c->models[0])
        return NULL;
    if (stat(c->models, &now) < 0)
        memset(&now, 0, sizeof now);
    if (!f->looked || !file_is_same(&f->mark, &now)) {
        f->looked = true;
        f->mark = now;
        read_table(f, c->models);
    }
    return f->table;
}

void
modelfile_free(struct modelfile *f)
{
    models_free(f->table);
    free(f);
}
