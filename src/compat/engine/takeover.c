/* The lock of a front end, and the search for jobs its last run left with another daemon; see
 * takeover.h. The lock lies beside the front end's files and holds the path of the daemon's
 * socket. */
#include "compat/engine/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "wire/client.h"

int
compat_lock(const char *lock, struct err *e, const char *held_words, ...)
{
    auto_buf struct buf words = BUF_INIT;
    bool held = false;
    int fd = file_lock(lock, &held, e);
    va_list ap;

    if (!held)
        return fd;
    va_start(ap, held_words);
    buf_addv(&words, held_words, ap);
    va_end(ap);
    return err_set(e, ERR_FAILED, "%s", buf_str(&words));
}

static pid_t
pid_of(const struct client *c)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return getsockopt(client_fd(c), SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 ? cred.pid : -1;
}

static bool
has_value(const json_t *field, const char *value)
{
    const char *text = json_string_value(field);

    return (text && strcmp(text, value) == 0) || answer_has_word(field, value);
}

/* " 3 7 12" */
static void
add_ids(struct client *c, const char *field, const char *value, struct buf *out)
{
    const struct passwd *me = getpwuid(geteuid());
    auto_json json_t *result = NULL;
    size_t i;
    json_t *row;

    if (client_call(
            c, "jobs",
            json_pack("{s:s*,s:[s,s]}", "user", me ? me->pw_name : NULL, "fields", "id", field),
            &result, NULL) < 0)
        return;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        if (has_value(json_array_get(row, 1), value))
            buf_addf(out, " %lld", (long long)json_integer_value(json_array_get(row, 0)));
    }
}

int
compat_check_left(struct client *then, const struct client *now, const char *field,
                  const char *value, struct err *e)
{
    auto_buf struct buf ids = BUF_INIT;

    if (then && pid_of(then) != pid_of(now))
        add_ids(then, field, value, &ids);
    if (ids.len == 0)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "jobs of the last run are left with another daemon and would run twice; go "
                   "on there (BERTH_SOCKET=%s), or cancel them: berth --socket %s cancel%s",
                   client_path(then), client_path(then), buf_str(&ids));
}

/* Connect to the socket noted in a lock; NULL if it is `but` or nothing answers. */
static struct client *
connect_noted(int lock, const char *but)
{
    char socket[PATH_MAX] = "";
    const struct cli cli = {.socket = socket};

    return pread(lock, socket, sizeof socket - 1, 0) > 0 && strcmp(socket, but) != 0
               ? connect_daemon(&cli, NULL)
               : NULL;
}

struct client *
compat_find_left(const char *lock)
{
    auto_close int fd = open(lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);

    return fd < 0 ? NULL : connect_noted(fd, "");
}

int
compat_take_over(int lock, const struct client *now, const char *file, struct err *e)
{
    const char *path = client_path(now);
    auto_client struct client *then = connect_noted(lock, path);
    size_t len = strlen(path);

    if (compat_check_left(then, now, "file", file, e) < 0)
        return -1;
    if (ftruncate(lock, 0) < 0 || pwrite(lock, path, len, 0) != (ssize_t)len)
        return err_errno(e, ERR_FAILED, errno, "cannot write the lock of %s", file);
    return 0;
}
