/* Checks of `berth doctor` outside Berth: rights on its folders, other daemons that own GPUs,
 * the driver's persistence mode. BERTH_DOCTOR_ROOT replaces / as the root for files of the
 * kernel and system services; tests create such trees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/doctor/doctor_verb.h"
#include "cli/verbs/screens_verb.h"
#include "wire/places.h"

#define WHO_MAX_BYTES 512

char *
doctor_system_path(const char *path)
{
    const char *root = getenv("BERTH_DOCTOR_ROOT");

    return xasprintf("%s%s", root ? root : "", path);
}

void
doctor_check_rights(struct doctor *d, const struct places *p)
{
    struct stat st;

    if (stat(p->state, &st) < 0) {
        if (errno != ENOENT)
            doctor_say(d, DOCTOR_FAIL, "rights", "cannot inspect %s: %s", p->state,
                       strerror(errno));
        return;
    }
    if (st.st_uid != geteuid())
        doctor_say(
            d, DOCTOR_FAIL, "rights",
            "%s belongs to user %u; run 'chown -R %u %s', or choose another folder with --dir",
            p->state, st.st_uid, geteuid(), p->state);
    else if (st.st_mode & 077)
        doctor_say(d, DOCTOR_FAIL, "rights",
                   "other users can enter %s (mode %o), which has commands and environments; "
                   "run 'chmod 700 %s'",
                   p->state, st.st_mode & 0777, p->state);
    else
        doctor_say(d, DOCTOR_OK, "rights", "only the owner can enter %s", p->state);
}

/* Reads the line that a daemon leaves in the lock of its GPU; false if the lock is free or
 * ours. */
static bool
is_another_daemons(int dir, const char *name, const char *state, struct buf *who)
{
    if (file_read_locked_at(dir, name, WHO_MAX_BYTES, who, NULL) <= 0)
        return false;
    while (who->len > 0 && who->data[who->len - 1] == '\n')
        who->data[--who->len] = '\0';
    const char *its = strstr(buf_str(who), " state ");

    return !its || strcmp(its + strlen(" state "), state) != 0;
}

void
doctor_check_other_daemons(struct doctor *d, const char *lock_dir, const char *state)
{
    int fd = open(lock_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        auto_buf struct buf who = BUF_INIT;

        if (strncmp(entry->d_name, "berth-gpu-", 10) == 0 &&
            is_another_daemons(dirfd(dir), entry->d_name, state, &who))
            doctor_say(d, DOCTOR_WARN, "daemons",
                       "another daemon has %s: %s; stop it, or send jobs there with --socket",
                       entry->d_name + strlen("berth-gpu-"), buf_str(&who));
    }
}

/* Without persistence mode the driver unloads its state after its last process, and the next
 * job waits seconds for it. The daemon that keeps it loaded has a socket. */
void
doctor_check_persistence(struct doctor *d)
{
    auto_free char *driver = doctor_system_path("/proc/driver/nvidia/version");
    auto_free char *keeper = doctor_system_path("/run/nvidia-persistenced/socket");

    if (access(driver, F_OK) < 0)
        return;
    if (access(keeper, F_OK) == 0)
        doctor_say(d, DOCTOR_OK, "driver", "nvidia-persistenced keeps the driver loaded");
    else
        doctor_say(d, DOCTOR_WARN, "driver",
                   "nvidia-persistenced is not running, so the first job after a pause waits "
                   "seconds for the driver; run 'systemctl enable --now nvidia-persistenced' "
                   "or 'nvidia-smi -pm 1'");
}

/* A missing screen is no failure: only --screen needs it. */
void
doctor_check_screen(struct doctor *d)
{
    struct err e;

    if (screens_need(&e) == 0)
        doctor_say(d, DOCTOR_OK, "screen", "found, for --screen");
    else
        doctor_say(d, DOCTOR_OK, "screen", "not found; --screen needs the package 'screen'");
}
