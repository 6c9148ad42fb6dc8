/* Spare folders: see spare_folders.h. attempt_folder.c calls this.
 *
 * A folder that is used again must not bring anything from the attempt that had it: neither a
 * mark or record that recovery would read, nor a supervisor that could still write one. So it
 * is emptied when it is kept; and it is taken only with its lock in hand, which a supervisor
 * holds to its end, and after another look at what is in it. Nothing depends on a spare folder
 * being there: whatever is odd about one, it is removed, and a new folder made. The names of
 * attempts' folders and what they hold are what they always were, so recovery knows nothing of
 * this. */
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

#define SPARE_MAX   32 /* more than start in one turn of most machines */
#define TAKE_TRIES  2
#define NAME_BYTES  32
#define NAME_FORMAT ".spare.%u"

/* Named ".spare.N" with N from first on, the oldest first. */
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

/* Whether the folder holds "lock" and nothing else. */
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

/* What supervisors leave there beside the lock. */
static const char *const others[] = {"ctl.sock", "exit", "exit.tmp"};
#define N_OTHERS (sizeof others / sizeof *others)

/* Whether a folder has what a new one has, whatever its lock file says; *lock is that file, for
 * the caller to close. What is in one that is taken is looked at with the lock in hand: until
 * then its supervisor may write there. */
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
    /* Emptied also because it holds the environment of a job, which is not to lie there. */
    if (s->n >= SPARE_MAX || look_into(jobs_fd, name, false, &lock) != FIT ||
        ftruncate(lock, 0) < 0)
        return false;
    crash_point("daemon-folder-emptied");
    if (renameat(jobs_fd, name, jobs_fd, spare_name(s->first + s->n, kept)) < 0) {
        s->first += s->n == 0; /* an earlier daemon's that cannot be removed may have it */
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

/* One that is not fit to be used. What another program has put into it keeps it; then the next
 * daemon tries again. */
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

/* Its supervisor has yet to leave: it becomes the youngest, so that it is in no other's way. */
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
