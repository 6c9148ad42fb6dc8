/* Folders of attempts: see attempt_folder.h. */
#include "daemon/attempt/attempt_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/spare_folders.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "sys/exitrec.h"
#include "wire/json_text.h"

#define STRAYS_MS      5000
#define STRAYS_MAX_MS  (INT64_C(3600) * 1000)
#define LOCK_MAX_BYTES (64 * 1024 * 1024) /* a spec comes from a single request */

static void
remove_file(int jobs_fd, const char *folder, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlinkat(jobs_fd, path, 0);
}

static int
folder_try_remove(int jobs_fd, const char *name)
{
    static const char *const others[] = {"ctl.sock", "exit", "exit.tmp", "started",
                                         "pulse",    "stop", "signals"}; /* rarely there */
    remove_file(jobs_fd, name, "lock");
    if (unlinkat(jobs_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR && unlinkat(jobs_fd, name, 0) == 0)
        return 0; /* a damaged file system or a user put a file there */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        remove_file(jobs_fd, name, others[i]);
    return unlinkat(jobs_fd, name, AT_REMOVEDIR) ? errno : 0;
}

/* --- orphaned folders --- */

/* True if the attempt's folder is here, and its outcome is still to come or to be committed.
 * The last attempt of a job that waits to run again needs no folder. */
static bool
is_needed(const struct instance *inst, int jobs_fd, const struct job *job, int attempt)
{
    return job && job->run && job->run->number == attempt &&
           shared_folder_fd_for(inst, job) == jobs_fd &&
           (job_state_is_active(job->state) || job->unsaved);
}

static void
say_stays(const char *name, int why)
{
    unsigned id;
    int attempt;
    if (sscanf(name, "%u.%d", &id, &attempt) == 2)
        log_warn("job=%u attempt=%d folder stays for now: %s", id, attempt, strerror(why));
    else
        log_warn("event=strays the folder %s stays for now: %s", name, strerror(why));
}

/* True if the folder was removed, or is not an orphan. say: log the reason of a failure. A
 * locked folder has a supervisor about to exit; folders of Slurm attempts have no locks. */
static bool
remove_stray(struct attempts *a, int jobs_fd, const char *name, bool say)
{
    unsigned id;
    int attempt;
    struct err ignored;
    if (!spare_is_left(a->spare_folders, name) &&
        (sscanf(name, "%u.%d", &id, &attempt) != 2 ||
         is_needed(a->inst, jobs_fd, queue_get(a->inst->queue, id), attempt)))
        return true;
    auto_close int one = openat(jobs_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (one < 0)
        return errno == ENOENT || errno == ENOTDIR;
    if (jobs_fd == a->inst->jobs_fd && file_is_locked_at(one, "lock", &ignored) != 0)
        return false;
    int rc = folder_try_remove(jobs_fd, name);
    if (rc && say)
        say_stays(name, rc);
    return rc == 0;
}

static void on_strays(uv_timer_t *timer);

/* Doubles the pause each time. */
static void
look_again(struct attempts *a)
{
    a->strays_timer.data = a;
    uv_timer_start(&a->strays_timer, on_strays, (uint64_t)a->strays_ms, 0);
    a->strays_ms = a->strays_ms < STRAYS_MAX_MS / 2 ? a->strays_ms * 2 : STRAYS_MAX_MS;
}

/* Removes the orphans in one folder of attempts' folders. 1: some stay. */
static int
remove_strays_in(struct attempts *a, int jobs_fd, bool say, struct err *e)
{
    bool all = true;
    auto_close int fd = openat(jobs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(TAKE_FD(fd));
    if (!dir)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s/jobs", a->inst->places.state);
    for (const struct dirent *entry; (entry = readdir(dir));)
        all &= remove_stray(a, jobs_fd, entry->d_name, say);
    return all ? 0 : 1;
}

/* Removes folders of settled and of uncommitted attempts. Tries again later for those still in
 * use, because they contain a job's environment, which must not stay long; and for the folder
 * shared with nodes when it is not available. */
static int
remove_strays(struct attempts *a, bool say, struct err *e)
{
    struct err ignored;
    int rc = remove_strays_in(a, a->inst->jobs_fd, say, e);
    int there = shared_folder_is_apart(a->inst) ? shared_folder_open(a->inst, &ignored) : -1;
    if (rc < 0)
        return -1;
    if (there == 0)
        there = remove_strays_in(a, a->inst->shared.jobs_fd, say, &ignored);
    if (rc > 0 || (shared_folder_is_apart(a->inst) && there != 0))
        look_again(a);
    return 0;
}

static void
on_strays(uv_timer_t *timer)
{
    struct err e;
    if (remove_strays(timer->data, false, &e) == 0)
        return;
    log_warn("event=strays %s", e.text);
    look_again(timer->data);
}

/* Tries to remove orphaned folders again after a first, short pause. */
static void
clean_later(struct attempts *a)
{
    a->strays_ms = STRAYS_MS;
    look_again(a);
}

int
folders_clean(struct attempts *a, struct err *e)
{
    a->strays_ms = STRAYS_MS;
    return remove_strays(a, true, e);
}

void
folder_remove(struct attempts *a, const struct job *job)
{
    char name[32];
    int rc = folder_try_remove(shared_folder_fd_for(a->inst, job),
                               folder_name(job->id, job->run->number, name));

    if (rc == 0)
        return;
    say_stays(name, rc);
    clean_later(a);
}

void
folder_done(struct attempts *a, const struct job *job)
{
    char name[32];
    if (!spare_keep(a->spare_folders, a->inst->jobs_fd,
                    folder_name(job->id, job->run->number, name)))
        folder_remove(a, job);
}

/* --- making folders --- */

/* Makes the folder of attempts' folders again after somebody removed it. The state folder
 * around it is not made again: without it, no part of the daemon can work. */
static int
remake_jobs(struct instance *inst, struct err *e)
{
    auto_free char *path = xasprintf("%s/jobs", inst->places.state);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", path);
    log_warn("event=jobs-folder-remade path=%s it had been removed", path);
    close(inst->jobs_fd);
    inst->jobs_fd = fd;
    return 0;
}

static int
make_dir_at_home(struct instance *inst, const char *name, struct err *e)
{
    int rc = mkdirat(inst->jobs_fd, name, 0700);
    if (rc && errno == ENOENT) {
        if (remake_jobs(inst, e) < 0)
            return -1;
        rc = mkdirat(inst->jobs_fd, name, 0700);
    }
    if (rc)
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s/jobs/%s",
                         inst->places.state, name);
    return 0;
}

/* The folder shared with nodes is not made again here: see shared_folder.h. */
static int
make_dir(struct instance *inst, const struct job *job, const char *name, struct err *e)
{
    if (!shared_folder_has(inst, job))
        return make_dir_at_home(inst, name, e);
    auto_free char *jobs = shared_folder_path(inst, "jobs");
    if (mkdirat(shared_folder_fd_for(inst, job), name, 0700) < 0)
        return err_errno(e, ERR_FAILED, errno, "slurm_folder: cannot make the folder %s/%s",
                         jobs, name);
    return 0;
}

/* A folder that already exists is left from a start that was taken back. */
static int
make_new_dir(struct attempts *a, const struct job *job, const char *name, struct err *e)
{
    if (make_dir(a->inst, job, name, e) == 0)
        return 0;
    if (e->errnum != EEXIST)
        return -1;
    folder_remove(a, job);
    return make_dir(a->inst, job, name, e);
}

int
folder_make(struct attempts *a, const struct job *job, struct err *e)
{
    char name[32], lock[64];
    folder_name(job->id, job->run->number, name);
    if (job->req.demand.engine != ENGINE_SLURM && /* whose nodes may have it cached */
        spare_take(a->spare_folders, a->inst->jobs_fd, name)) {
        crash_point("daemon-folder-made");
        return 0;
    }
    snprintf(lock, sizeof lock, "%s/lock", name);
    if (make_new_dir(a, job, name, e) < 0)
        return -1;
    crash_point("daemon-folder-made");
    int fd = openat(shared_folder_fd_for(a->inst, job), lock,
                    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot make %s/jobs/%s",
                  shared_folder_has(a->inst, job) ? shared_folder_setting(a->inst)
                                                  : a->inst->places.state,
                  lock);
        folder_remove(a, job);
        return -1;
    }
    close(fd);
    return 0;
}

char *
folder_read_cap_group(const struct attempts *a, const struct job *job)
{
    char folder[32];
    auto_buf struct buf lock = BUF_INIT;
    auto_free char *name = xasprintf("%s/lock", folder_name(job->id, job->run->number, folder));
    if (file_read_at(a->inst->jobs_fd, name, LOCK_MAX_BYTES, &lock, NULL) < 0 ||
        lock.len <= EXITREC_HEAD_BYTES)
        return NULL;
    const char *spec = lock.data + EXITREC_HEAD_BYTES;
    const char *end = memchr(spec, '\n', lock.len - EXITREC_HEAD_BYTES);
    json_t *what = end ? json_text_read(spec, (size_t)(end - spec), NULL) : NULL;
    const char *group =
        json_string_value(json_object_get(json_object_get(what, "cap"), "group"));
    char *copy = group ? xstrdup(group) : NULL;
    json_decref(what);
    return copy;
}

/* Tests what a start needs of this folder: room for a file name and for some bytes. */
static int
try_folder(int dir, const char *path, struct err *e)
{
    static const char bytes[EXITREC_HEAD_BYTES];
    auto_close int fd =
        openat(dir, ".trial", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a file in %s", path);
    int rc = file_write_all(fd, bytes, sizeof bytes);
    int why = errno;
    (void)unlinkat(dir, ".trial", 0);
    return rc ? err_errno(e, ERR_FAILED, why, "cannot write to a file in %s", path) : 0;
}

int
folders_try(struct instance *inst, struct err *e)
{
    auto_free char *jobs = xasprintf("%s/jobs", inst->places.state);
    (void)unlinkat(inst->jobs_fd, ".trial.d",
                   AT_REMOVEDIR); /* left by a daemon that was killed */
    if (make_dir_at_home(inst, ".trial.d", e) < 0)
        return -1;
    (void)unlinkat(inst->jobs_fd, ".trial.d", AT_REMOVEDIR);
    if (try_folder(inst->jobs_fd, jobs, e) < 0)
        return -1;
    auto_close int logs = open(inst->places.logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (logs < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the folder of logs %s",
                         inst->places.logs);
    return try_folder(logs, inst->places.logs, e);
}
