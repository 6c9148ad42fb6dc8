/* Spare folders: see spare_folders.h. Called by attempt_folder.c.
 *
 * A reused folder must not bring anything from its previous attempt: neither a mark or record
 * that recovery would read, nor a supervisor that could still write one. So a folder is
 * emptied when it is kept, and taken only while holding its lock, which a supervisor holds
 * until it exits, and after another check of its contents. Nothing depends on a spare folder:
 * one that looks wrong in any way is removed, and a new folder made. Reused folders have the
 * usual names and contents, so recovery need not treat them specially. */
#include "daemon/attempt/spare_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"

#define SPARE_MAX   32 /* more than start in one turn on most machines */
#define TAKE_TRIES  2
#define NAME_BYTES  32
#define NAME_FORMAT ".spare.%u"

/* Spare folders are named ".spare.N"; N counts from first, the oldest. */
struct spare_folders {
    uint32_t first;
    uint32_t n;
};

struct spare_folders *
spare_new(void)
{
    return xcalloc(1, sizeof(struct spare_folders));
}

static char *
spare_name(uint32_t number, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, NAME_FORMAT, number);
    return out;
}

/* True if the folder contains "lock" and nothing else. */
static bool
holds_lock_only(DIR *dir)
{
    int n = 0;
    for (const struct dirent *entry; (errno = 0, entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strcmp(entry->d_name, "lock") != 0)
            return false;
        n++;
    }
    return n == 1 && errno == 0;
}

enum fitness { FIT, IN_USE, UNFIT };

/* What supervisors leave beside the lock. */
static const char *const others[] = {"ctl.sock", "exit", "exit.tmp"};
#define N_OTHERS (sizeof others / sizeof *others)

/* Checks that a folder has the same contents as a new one, apart from the lock file's, and
 * removes what a supervisor left. *lock: the lock file, closed by the caller. take: checks
 * while holding the lock, because until then its supervisor may write there. */
static enum fitness
look_into(int jobs_fd, const char *name, bool take, int *lock)
{
    struct stat st;
    int fd = openat(jobs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return UNFIT;
    *lock = openat(fd, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*lock < 0 || fstat(*lock, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
        st.st_uid != geteuid())
        return UNFIT;
    if (take && flock(*lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? IN_USE : UNFIT;
    if (holds_lock_only(dir))
        return FIT;
    for (size_t i = 0; i < N_OTHERS; i++)
        (void)unlinkat(fd, others[i], 0);
    rewinddir(dir);
    return holds_lock_only(dir) ? FIT : UNFIT;
}

bool
spare_keep(struct spare_folders *s, int jobs_fd, const char *name)
{
    char kept[NAME_BYTES];
    auto_close int lock = -1;
    /* Also emptied because it contains a job's environment, which must not stay there. */
    if (s->n >= SPARE_MAX || look_into(jobs_fd, name, false, &lock) != FIT ||
        ftruncate(lock, 0) < 0)
        return false;
    crash_point("daemon-folder-emptied");
    if (renameat(jobs_fd, name, jobs_fd, spare_name(s->first + s->n, kept)) < 0) {
        s->first += s->n == 0; /* an earlier daemon's folder may have the name */
        return false;
    }
    s->n++;
    return true;
}

static enum fitness
take_one(int jobs_fd, const char *spare, const char *name)
{
    auto_close int lock = -1;
    enum fitness fitness = look_into(jobs_fd, spare, true, &lock);
    if (fitness != FIT)
        return fitness;
    return ftruncate(lock, 0) == 0 && renameat(jobs_fd, spare, jobs_fd, name) == 0 ? FIT
                                                                                   : UNFIT;
}

/* Removes an unfit spare folder. It stays if another program has put something into it; the
 * next daemon tries again. */
static void
remove_one(int jobs_fd, const char *spare)
{
    char path[NAME_BYTES + 16];
    for (size_t i = 0; i <= N_OTHERS; i++) {
        snprintf(path, sizeof path, "%s/%s", spare, i < N_OTHERS ? others[i] : "lock");
        (void)unlinkat(jobs_fd, path, 0);
    }
    (void)unlinkat(jobs_fd, spare, AT_REMOVEDIR);
}

/* Its supervisor has not exited yet: moves it to the end, so that it does not block
 * the others. */
static void
put_back(struct spare_folders *s, int jobs_fd, const char *spare)
{
    char last[NAME_BYTES];
    if (renameat(jobs_fd, spare, jobs_fd, spare_name(s->first + s->n, last)) == 0)
        s->n++;
    else
        remove_one(jobs_fd, spare);
}

bool
spare_take(struct spare_folders *s, int jobs_fd, const char *name)
{
    char spare[NAME_BYTES];
    for (int i = 0; i < TAKE_TRIES && s->n > 0; i++) {
        spare_name(s->first, spare);
        s->first++;
        s->n--;
        enum fitness fitness = take_one(jobs_fd, spare, name);
        if (fitness == FIT)
            return true;
        if (fitness == IN_USE)
            put_back(s, jobs_fd, spare);
        else
            remove_one(jobs_fd, spare);
    }
    return false;
}

bool
spare_is_left(const struct spare_folders *s, const char *name)
{
    unsigned number;
    int end = 0;
    if (sscanf(name, NAME_FORMAT "%n", &number, &end) != 1 || name[end])
        return false;
    return number - s->first >= s->n;
}
