/* Messages and names of drop-in commands; see compat.h. */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "compat/compat.h"

const char *
compat_name(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');

    return slash ? slash + 1 : argv0;
}

int
compat_fail(int status, const char *name, const char *fmt, ...)
{
    auto_buf struct buf out = BUF_INIT;
    va_list ap;

    if (name)
        buf_addf(&out, "%s: ", name);
    va_start(ap, fmt);
    buf_addv(&out, fmt, ap);
    va_end(ap);
    buf_addc(&out, '\n');
    (void)file_write_all(STDERR_FILENO, out.data, out.len);
    return status;
}

int
compat_say(const char *fmt, ...)
{
    auto_buf struct buf out = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&out, fmt, ap);
    va_end(ap);
    buf_addc(&out, '\n');
    return cli_put(&out);
}

bool
compat_first_time(json_t **set, const char *text)
{
    if (!*set)
        *set = json_object();
    if (json_object_get(*set, text))
        return false;
    json_object_set_new_nocheck(*set, text, json_true());
    return true;
}
