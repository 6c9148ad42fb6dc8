/* Files of JSON lines; see line_records.h. */
#include "compat/engine/line_records.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/engine/compat_paths.h"
#include "compat/py/pytext.h"

#define FILE_MAX_BYTES ((size_t)1 << 30)

static struct record *
push(struct records *r)
{
    r->at = xgrow(r->at, r->n, &r->cap, sizeof *r->at);
    r->at[r->n] = (struct record){0};
    return &r->at[r->n++];
}

static void
add_line(struct records *out, const char *line, size_t n)
{
    struct record *rec;

    n = py_strip(&line, n);
    if (n == 0)
        return;
    rec = push(out);
    rec->value = json_loadb(line, n, JSON_DECODE_ANY, NULL);
    if (!rec->value)
        rec->text = xstrndup(line, n);
}

int
records_load(const char *path, struct records *out, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    const char *at, *end;

    *out = (struct records){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(path, FILE_MAX_BYTES, &text, e) < 0)
        return -1;
    at = buf_str(&text);
    end = at + text.len;
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);

        add_line(out, at, n);
        at += n + 1;
    }
    return 0;
}

/* Replace the file only if it still matches was; NULL: always. */
static int
replace(const char *path, const void *bytes, size_t n, bool sync, const struct stat *was,
        struct err *e)
{
    auto_free char *real = realpath(path, NULL);
    auto_free char *for_dir = xstrdup(real ? real : path);
    auto_free char *for_name = xstrdup(real ? real : path);
    auto_close int dir = open(dirname(for_dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name = basename(for_name);
    mode_t bits = umask(0);
    struct stat st = {0}, now = {0};
    bool there = stat(path, &st) == 0;

    umask(bits);
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    if (file_write_temp_at(dir, name, bytes, n, there ? st.st_mode & 07777 : 0666 & ~bits, sync,
                           e) < 0)
        return -1;
    (void)stat(path, &now);
    if (was && !file_is_same(was, &now))
        return 1;
    if (file_rename_temp_at(dir, name, sync, e) < 0)
        return -1;
    if (there && (st.st_uid != geteuid() || st.st_gid != getegid()))
        (void)!fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
    if (there && st.st_mode & bits & 0777) /* bits that the umask removed from the new file */
        (void)!fchmodat(dir, name, st.st_mode & 07777, 0);
    return 0;
}

int
records_replace(const char *path, const void *bytes, size_t n, bool sync, struct err *e)
{
    return replace(path, bytes, n, sync, NULL, e);
}

int
records_replace_if(const char *path, const void *bytes, size_t n, const struct stat *was,
                   struct err *e)
{
    return replace(path, bytes, n, true, was, e);
}

void
records_free(struct records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        json_decref(r->at[i].value);
        free(r->at[i].text);
    }
    free(r->at);
    *r = (struct records){0};
}

int
records_append(const char *path, const struct buf *lines, bool sync, struct err *e)
{
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    auto_buf struct buf text = BUF_INIT;
    struct stat st;
    char last = '\n';

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "%s", path);
    (void)flock(fd, LOCK_EX);
    if (fstat(fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "%s", path);
    if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
        buf_addc(&text, '\n');
    buf_add(&text, lines->data, lines->len);
    if (file_write_all(fd, text.data, text.len) < 0 || (sync && fsync(fd) < 0)) {
        (void)err_errno(e, ERR_FAILED, errno, "%s", path);
        (void)!ftruncate(fd, st.st_size);
        return -1;
    }
    return 0;
}

char *
records_lock_path(const char *path)
{
    auto_free char *real = compat_absolute(path), *for_dir = xstrdup(real);

    return xasprintf("%s/.%s.lock", dirname(for_dir), basename(real));
}
