/* The unit that jobs live in: see jobs_unit.h. A job inside the daemon's own service would be
 * counted against the daemon's limits and share its sandbox; could not be confined, because a
 * cgroup that contains processes cannot enable controllers for its subgroups; and would hinder
 * the next start of the service. So the nursery starts elsewhere, each time in a new unit; old
 * units disappear with their last job.
 *
 * Under systemd the machine's daemon names a template unit (dist/berth-jobs@.service.in) for
 * the manager to start, so that jobs inherit nothing of the daemon's sandbox. Other daemons
 * ask for a scope, which adopts a process as it is: jobs have the limits and keyrings of the
 * user's daemon. Both requests go through systemd's own programs. Called by nursery_link.c. */
#include "daemon/nursery/jobs_unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/helpers.h"
#include "sys/spawn.h"
#include "wire/places.h"

/* A unit name that no existing unit has: contains the daemon's pid and the time. */
static char *
unique_name(const char *base)
{
    return xasprintf("%s-%d-%llx", base, (int)getpid(), (unsigned long long)clock_boot_us());
}

/* --- scope --- */

static void
add(struct jobsunit_scope *s, char *text)
{
    s->texts[s->n++] = text;
}

static void
add_property(struct jobsunit_scope *s, const char *text)
{
    add(s, xstrdup("-p"));
    add(s, xstrdup(text));
}

/* Runs systemd-run only if a user manager exists that can answer. */
static bool
find_user_manager(struct jobsunit_scope *out)
{
    const char *named = getenv("XDG_RUNTIME_DIR");
    auto_free char *dir = places_runtime_dir();
    auto_free char *manager = xasprintf("%s/systemd/private", dir ? dir : "");
    if (!dir || access(manager, W_OK) < 0)
        return false;
    if (!named || strcmp(named, dir) != 0)
        out->runtime_dir = TAKE(dir);
    return true;
}

bool
jobsunit_scope_find(const char *base, struct jobsunit_scope *out)
{
    const char *program = helper_systemd_run();
    *out = (struct jobsunit_scope){0};
    if (!program || access("/run/systemd/system", F_OK) < 0)
        return false;
    if (geteuid() != 0 && !find_user_manager(out))
        return false;
    auto_free char *name = unique_name(base);
    add(out, xstrdup(program));
    if (geteuid() != 0)
        add(out, xstrdup("--user"));
    add(out, xstrdup("--scope"));
    add(out, xstrdup("--quiet"));
    add(out, xstrdup("--collect"));
    add(out, xasprintf("--unit=%s.scope", name));
    add(out, xstrdup("--slice=berth.slice"));
    add(out, xstrdup("--description=Jobs of Berth"));
    add_property(out, "Delegate=yes");
    add_property(out, "KillSignal=SIGURG");
    add_property(out, "TimeoutStopSec=60");
    add_property(out, "TasksMax=infinity");
    add(out, xstrdup("--"));
    return true;
}

void
jobsunit_scope_free(struct jobsunit_scope *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->texts[i]);
    free(s->runtime_dir);
    *s = (struct jobsunit_scope){0};
}

/* --- instance of a template unit --- */

static int
listen_at(const char *path, struct err *e)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return err_set(e, ERR_FAILED, "%s is too long for a socket", path);
    memcpy(addr.sun_path, path, strlen(path) + 1);
    auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)unlink(path);
    mode_t old = umask(0177);
    int rc = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&addr, sizeof addr);
    int why = errno;
    umask(old);
    if (rc == 0 && listen(fd, 1) == 0)
        return TAKE_FD(fd);
    return err_errno(e, ERR_FAILED, rc < 0 ? why : errno, "cannot listen at %s", path);
}

static int
ask_manager(const char *unit, struct err *e)
{
    char *argv[] = {(char *)(uintptr_t)helper_systemctl(), (char[]){"start"},
                    (char *)(uintptr_t)unit, NULL};
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    struct spawn s = SPAWN_INIT;
    int errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    if (!argv[0])
        return err_set(e, ERR_FAILED, "there is no systemctl to start %s", unit);
    s.argv = argv;
    s.envp = environ;
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = 3;
    /* Ignores its exit status: it prints its own errors, and only the connection matters. */
    if (spawn_process(&s, &errnum, &stage) < 0)
        return err_errno(e, ERR_FAILED, errnum, "cannot run %s", argv[0]);
    return 0;
}

/* Accepts only a process of our own user, because we trust what the nursery says. */
static int
accept_own(int listener, int patience_ms)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (!file_await(listener, patience_ms))
        return -1;
    auto_close int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
        peer.uid != geteuid())
        return -1;
    return TAKE_FD(fd);
}

int
jobsunit_start(const char *template_unit, const char *base, int patience_ms, struct err *e)
{
    auto_free char *name = unique_name(base);
    auto_free char *unit = xasprintf("%s%s.service", template_unit, name);
    auto_free char *folder = xstrdup(PLACES_SYSTEM_SOCKET);
    *strrchr(folder, '/') = '\0';
    auto_free char *path = xasprintf("%s/%s.sock", folder, name);
    auto_close int listener = listen_at(path, e);
    if (listener < 0)
        return -1;
    int fd = ask_manager(unit, e) < 0 ? -2 : accept_own(listener, patience_ms);
    (void)unlink(path);
    if (fd == -1)
        return err_set(e, ERR_FAILED, "%s, in which jobs are to live, did not start", unit);
    return fd < 0 ? -1 : fd;
}
