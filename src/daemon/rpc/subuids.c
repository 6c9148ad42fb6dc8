/* /etc/subuid: see subuids.h. Read as a file and never through a directory service, which may
 * be slow or unavailable, because this runs in the daemon's loop. Called by user_shares.c. */
#include "daemon/rpc/subuids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"

#define FILE_MAX_BYTES (1 << 20)

struct range {
    uid_t first;
    uint64_t n;
};

struct subuids {
    char *path;
    struct timespec changed;
    off_t size;
    ino_t ino;
    struct range *ranges;
    size_t n;
};

static bool
is_same_file(struct subuids *s)
{
    struct stat st = {0};
    (void)stat(s->path, &st); /* a missing file counts as empty */
    bool same = st.st_ino == s->ino && st.st_size == s->size &&
                st.st_mtim.tv_sec == s->changed.tv_sec &&
                st.st_mtim.tv_nsec == s->changed.tv_nsec;
    s->ino = st.st_ino;
    s->size = st.st_size;
    s->changed = st.st_mtim;
    return same;
}

/* "alice:100000:65536"; other lines are skipped. */
static void
read_line(struct subuids *s, char *line)
{
    char *rest = line;
    int64_t first, n;
    (void)strsep(&rest, ":");
    const char *number = strsep(&rest, ":");
    if (!number || !rest || parse_int(number, 1, UINT32_MAX - 1, &first, NULL) < 0 ||
        parse_int(rest, 1, UINT32_MAX, &n, NULL) < 0)
        return;
    s->ranges = xrealloc(s->ranges, (s->n + 1) * sizeof *s->ranges);
    s->ranges[s->n++] = (struct range){(uid_t)first, (uint64_t)n};
}

void
subuids_refresh(struct subuids *s)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e = {0};
    if (is_same_file(s))
        return;
    s->n = 0;
    if (file_read(s->path, FILE_MAX_BYTES, &text, &e) < 0 || text.len == 0)
        return;
    char *rest = text.data;
    while (rest)
        read_line(s, strsep(&rest, "\n"));
}

struct subuids *
subuids_new(const char *path)
{
    struct subuids *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    subuids_refresh(s);
    return s;
}

void
subuids_free(struct subuids *s)
{
    if (!s)
        return;
    free(s->path);
    free(s->ranges);
    free(s);
}

uid_t
subuids_group(const struct subuids *s, uid_t uid)
{
    for (size_t i = 0; i < s->n; i++)
        if (uid >= s->ranges[i].first && uid - s->ranges[i].first < s->ranges[i].n)
            return s->ranges[i].first;
    return uid;
}
