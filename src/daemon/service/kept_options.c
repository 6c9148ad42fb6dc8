/* File `options` in the state folder: lines `config=/path` and `set=KEY=VALUE`. A line whose
 * value has a line break gets the prefix `escaped-`, with \n for the line break and \\ for a
 * backslash; other values are stored as they are. Of a settings file only the path is stored,
 * so that later edits count. */
#include "daemon/service/kept_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "daemon/service/daemon_options.h"

#define FILE_NAME "options"
#define ESCAPED   "escaped-"
#define MAX_BYTES ((size_t)1 << 16)

static int
take_line(char *line, struct options *o)
{
    const int room = (int)(sizeof o->sets / sizeof o->sets[0]);
    if (strncmp(line, "config=", 7) == 0)
        o->config = line + 7;
    else if (strncmp(line, "set=", 4) == 0 && o->n_sets < room)
        o->sets[o->n_sets++] = line + 4;
    else
        return -1;
    return 0;
}

static void
add_line(struct buf *text, const char *key, const char *value)
{
    bool escapes = strchr(value, '\n') != NULL;
    buf_addf(text, "%s%s=", escapes ? ESCAPED : "", key);
    for (const char *p = value; *p; p++) {
        if (escapes && (*p == '\n' || *p == '\\'))
            buf_addc(text, '\\');
        buf_addc(text, *p == '\n' ? 'n' : *p);
    }
    buf_addc(text, '\n');
}

/* Undoes the escapes of a line, in place. */
static char *
unescape(char *line)
{
    const size_t n = sizeof ESCAPED - 1;
    if (strncmp(line, ESCAPED, n) != 0)
        return line;
    char *out = line;
    for (const char *p = line + n; *p; p++) {
        bool escaped = *p == '\\' && p[1];
        p += escaped;
        *out++ = escaped && *p == 'n' ? '\n' : *p;
    }
    *out = '\0';
    return line;
}

int
recall_options(const char *state, struct options *o, struct err *e)
{
    auto_free char *path = xasprintf("%s/" FILE_NAME, state);
    auto_buf struct buf text = BUF_INIT;
    if (o->config || o->n_sets || access(path, F_OK) < 0)
        return 0;
    if (file_read(path, MAX_BYTES, &text, e) < 0)
        return -1;
    o->recalled = buf_take(&text);
    char *rest = o->recalled, *line;
    while ((line = strsep(&rest, "\n"))) {
        if (*line && take_line(unescape(line), o))
            return err_set(e, ERR_FAILED,
                           "%s is damaged; remove it to start with only the files of settings",
                           path);
    }
    return 0;
}

int
recall_write(const char *state, const struct options *o, struct err *e)
{
    auto_close int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_buf struct buf text = BUF_INIT;
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", state);
    if (o->config) {
        auto_free char *whole = realpath(o->config, NULL);
        add_line(&text, "config", whole ? whole : o->config);
    }
    for (int i = 0; i < o->n_sets; i++)
        add_line(&text, "set", o->sets[i]);
    if (text.len == 0) {
        unlinkat(dir, FILE_NAME, 0);
        return 0;
    }
    auto_buf struct buf before = BUF_INIT;
    if (file_read_at(dir, FILE_NAME, MAX_BYTES, &before, NULL) == 0 &&
        strcmp(buf_str(&before), buf_str(&text)) == 0)
        return 0;
    return file_write_atomic_at(dir, FILE_NAME, text.data, text.len, 0600, false, e);
}

void
recall_forget(const char *state)
{
    auto_free char *path = xasprintf("%s/" FILE_NAME, state);
    unlink(path);
}
