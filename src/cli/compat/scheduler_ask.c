/* What commands beside a running scheduler share: reaching the daemon it works with, lists of
 * its jobs and sessions, lines for its jobs file. None of them starts a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/answer.h"
#include "cli/compat/scheduler.h"
#include "cli/connect.h"
#include "wire/client.h"

/* The one that the running scheduler names; else the tool's own, if it was left behind. */
struct client *
sched_connect(const char *state_file)
{
    auto_json json_t *owner = sched_owner(state_file);
    const char *dir = json_string_value(json_object_get(owner, "dir"));
    const char *socket = json_string_value(json_object_get(owner, "socket"));
    auto_free char *for_dir = xstrdup(state_file);
    auto_free char *own = xasprintf("%s/.berth", dirname(for_dir));
    const struct cli cli = {.dir = dir, .socket = socket};

    if (owner)
        return connect_daemon(&cli, NULL);
    return connect_trusted_at(own);
}

/* One write, so that two who add at once do not mix; a last line that was torn off is ended
 * first. */
int
sched_append(const char *path, const struct buf *line, struct err *e)
{
    auto_close int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    auto_buf struct buf text = BUF_INIT;
    char last = '\n';
    off_t size;

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open it");
    (void)flock(fd, LOCK_EX);
    size = lseek(fd, 0, SEEK_END);
    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        buf_addc(&text, '\n');
    buf_add(&text, line->data, line->len);
    if (file_write_all(fd, text.data, text.len) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write it");
    return 0;
}

void
sched_add_screens(struct buf *out, struct client *c, const char *title, const char *none)
{
    auto_json json_t *result = NULL;
    int n = 0;
    size_t i;
    json_t *job;

    if (c && client_call(c, "jobs", NULL, &result, NULL) == 0) {
        json_array_foreach(json_object_get(result, "jobs"), i, job)
        {
            const char *session = answer_str(job, "screen_session");
            const char *dot = strchr(session, '.');

            if (!*session)
                continue;
            if (n++ == 0)
                buf_adds(out, title);
            buf_addf(out, "%d. %s (Attach: screen -r %s)\n", n, dot ? dot + 1 : session,
                     dot ? dot + 1 : session);
        }
    }
    if (n == 0)
        buf_adds(out, none);
}
