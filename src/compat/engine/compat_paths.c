/* File names for the daemon; see compat_paths.h. */
#include "compat/engine/compat_paths.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

char *
compat_real(const char *path)
{
    auto_free char *for_dir = xstrdup(path), *for_name = xstrdup(path);
    auto_free char *real = realpath(path, NULL);
    auto_free char *folder = real ? NULL : realpath(dirname(for_dir), NULL);

    return real || !folder ? TAKE(real) : xasprintf("%s/%s", folder, basename(for_name));
}

char *
compat_absolute(const char *path)
{
    char *real = compat_real(path);
    auto_free char *here = real || path[0] == '/' ? NULL : getcwd(NULL, 0);

    if (real)
        return real;
    return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", here ? here : "", path);
}

char *
compat_log_pattern(const char *folder, const char *name)
{
    auto_buf struct buf out = BUF_INIT;

    for (const char *p = folder; *p; p++) {
        if (*p == '%')
            buf_addc(&out, '%');
        buf_addc(&out, *p);
    }
    buf_addf(&out, "/%s", name);
    return buf_take(&out);
}

int
compat_read_regular(const char *path, size_t max, struct buf *out, struct err *e)
{
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is no regular file", path);
    return file_read_at(AT_FDCWD, path, max, out, e);
}
