/* Reads the notes that the machine's daemon leaves beside its socket: see machine_turn.h and
 * daemon/service/start_note.c. A daemon of the user's own beside it would allocate the same
 * GPUs, so clients wait while it may be back soon. But its folder alone, which the package
 * makes at each start of the machine, says little: an administrator may have disabled it.
 * Called by connect.c and by the drop-in commands. */
#include "cli/ask/machine_turn.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/unixsock.h"
#include "wire/places.h"

#define BACK_S 5 /* a service manager restarts it within a second or two */
/* After that long the service manager has begun to start it, if it does so at all: before, it
 * waits for users' directories and GPUs' services. */
#define BOOTED_US INT64_C(120000000)
#define ENABLED   "/etc/systemd/system/multi-user.target.wants/berthd.service"

static bool
is_there(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    return access(path, F_OK) == 0;
}

static bool
is_answered(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    return unixsock_is_answered(path);
}

/* How it left, if it did so since the machine was started. */
static void
read_left(const char *folder, struct machine *m)
{
    auto_free char *path = xasprintf("%s/%s", folder, PLACES_LEFT);
    auto_buf struct buf how = BUF_INIT;
    struct stat st;

    if (lstat(path, &st) < 0 || file_read(path, 64, &how, NULL) < 0)
        return;
    m->state = strcmp(buf_str(&how), "failed") == 0 ? MACHINE_FAILED : MACHINE_STOPPED;
    m->soon = st.st_mtime <= time(NULL) && time(NULL) - st.st_mtime < BACK_S;
}

struct machine
machine_look_in(const char *folder, bool is_awaited)
{
    struct machine m = {.state = is_awaited ? MACHINE_STARTING : MACHINE_UNSEEN,
                        .soon = is_awaited};

    /* One of the two answers at every moment, also in that in which it begins to serve. */
    if (is_answered(folder, PLACES_STARTING) || is_answered(folder, "berth.sock"))
        return (struct machine){.state = MACHINE_STARTING, .soon = true};
    /* A stopped daemon has removed its socket; a dead one has left it. */
    if (is_there(folder, "berth.sock"))
        return (struct machine){.state = MACHINE_DIED, .soon = true};
    if (is_there(folder, PLACES_STARTING)) /* killed in its start */
        return (struct machine){.state = MACHINE_FAILED, .soon = true};
    read_left(folder, &m);
    return m;
}

bool
machine_is_enabled(void)
{
    return access("/run/systemd/system", F_OK) == 0 &&
           faccessat(AT_FDCWD, ENABLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct machine
machine_look(void)
{
    struct stat st;

    if (lstat(PLACES_SYSTEM_FOLDER, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != 0)
        return (struct machine){.state = MACHINE_NONE};
    return machine_look_in(PLACES_SYSTEM_FOLDER,
                           clock_boot_us() < BOOTED_US && machine_is_enabled());
}
