/* Notes beside the socket of the machine's daemon, from which a client decides whether to wait
 * for that daemon or to start one of its user's own (cli/ask/machine_turn.c), which would use
 * the same GPUs. Before the daemon serves, it may wait long for a driver. Meanwhile it listens
 * at the socket `starting`, which it never reads: a killed process stops listening, whereas the
 * pid in a file might be another process's by then, and any user could hold a lock on a file.
 * When it leaves, it writes the file `left`, as it may be back at once. Called by berthd.c. */
#include "daemon/service/start_note.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/unixsock.h"
#include "wire/places.h"

static bool
is_machines(const struct places *p)
{
    return p->system && !p->root && p->socket;
}

static int
open_folder(struct err *e)
{
    mode_t before = umask(022);
    int made = file_mkdirs(PLACES_SYSTEM_FOLDER, 0755, e);
    umask(before);
    if (made)
        return -1;
    return open(PLACES_SYSTEM_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
startnote_begin(const struct places *p)
{
    struct err e = {0};
    struct sockaddr_un addr;
    if (!is_machines(p))
        return -1;
    auto_close int dir = open_folder(&e);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dir >= 0)
        unlinkat(dir, PLACES_STARTING, 0);
    mode_t before = umask(0111);
    bool listens = dir >= 0 && fd >= 0 && unixsock_at(dir, PLACES_STARTING, &addr) == 0 &&
                   bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(fd, 1) == 0;
    umask(before);
    if (listens)
        return TAKE_FD(fd);
    log_warn("event=start-not-noted clients may not wait for this daemon: %m");
    return -1;
}

static void
withdraw(int fd)
{
    if (fd < 0)
        return;
    unlink(PLACES_SYSTEM_FOLDER "/" PLACES_STARTING);
    close(fd);
}

void
startnote_serving(const struct places *p, int fd)
{
    if (is_machines(p))
        unlink(PLACES_SYSTEM_FOLDER "/" PLACES_LEFT);
    withdraw(fd);
}

static void
note_left(const struct places *p, const char *how)
{
    struct err e = {0};
    if (!is_machines(p))
        return;
    auto_close int dir = open(PLACES_SYSTEM_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mode_t before = umask(022); /* for all users to read */
    if (dir >= 0 &&
        file_write_atomic_at(dir, PLACES_LEFT, how, strlen(how), 0644, false, &e) < 0)
        log_warn("event=exit-not-noted %s", e.text);
    umask(before);
}

void
startnote_stopped(const struct places *p, int fd)
{
    note_left(p, "stopped");
    withdraw(fd);
}

/* A second daemon, which is refused, has not failed to start the first. */
void
startnote_failed(const struct places *p, int fd)
{
    if (fd < 0 && (unixsock_is_answered(PLACES_SYSTEM_SOCKET) ||
                   unixsock_is_answered(PLACES_SYSTEM_FOLDER "/" PLACES_STARTING)))
        return;
    note_left(p, "failed");
    if (fd >= 0 && !unixsock_is_answered(PLACES_SYSTEM_SOCKET))
        unlink(PLACES_SYSTEM_SOCKET); /* an earlier daemon's, which died: it may not be back */
    withdraw(fd);
}
