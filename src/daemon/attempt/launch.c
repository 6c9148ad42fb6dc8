/* Launching: see launch.h. Called by turn.c once the decision is committed, so a crash
 * anywhere in here leaves an attempt that recovery finds: without a folder, or with one
 * whose lock is free and that has no `started` mark, it never ran and starts again; with
 * the lock held its shepherd lives. The lock is taken here and handed over open, so there
 * is no moment in which neither side holds it. */
#include "daemon/attempt/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/endings.h"
#include "core/queue/job.h"
#include "daemon/attempt/job_environ.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/nursery_link.h"
#include "daemon/attempt/recover.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/daemon.h"
#include "daemon/state/job_facts.h"
#include "spec/capabilities.h"
#include "spec/screenname.h"
#include "sys/confine.h"
#include "sys/exitrec.h"
#include "sys/nursery_packets.h"

char *
launch_folder(uint32_t job, int32_t attempt, char *out)
{
    snprintf(out, 32, "%u.%d", job, attempt);
    return out;
}

static void
remove_file(struct daemon *d, const char *folder, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlinkat(d->jobs_fd, path, 0);
}

int
launch_try_remove_folder(struct daemon *d, uint32_t job, int32_t attempt)
{
    static const char *const others[] = {"ctl.sock", "exit", "exit.tmp"}; /* there are seldom */
    char name[32];
    launch_folder(job, attempt, name);
    remove_file(d, name, "lock");
    if (unlinkat(d->jobs_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR && unlinkat(d->jobs_fd, name, 0) == 0)
        return 0; /* a damaged file system, or somebody, put something else there */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        remove_file(d, name, others[i]);
    return unlinkat(d->jobs_fd, name, AT_REMOVEDIR) ? errno : 0;
}

void
launch_remove_folder(struct daemon *d, uint32_t job, int32_t attempt)
{
    int rc = launch_try_remove_folder(d, job, attempt);

    if (rc == 0)
        return;
    log_warn("job=%u attempt=%d folder stays for now: %s", job, attempt, strerror(rc));
    recover_strays_later(d);
}

char *
launch_attach_path(const struct daemon *d, const struct job *job)
{
    if ((!job->req.interactive && !job->req.screen) || !job->run)
        return NULL;
    return xasprintf("%s/%u.%d.sock", d->places.attach, job->id, job->run->number);
}

void
launch_screen_name(const struct daemon *d, const struct job *job, struct buf *out)
{
    uint64_t cards = 0;
    for (int i = 0; i < job->run->n_gpus; i++)
        cards |= UINT64_C(1) << ledger_card(d->ledger, job->run->gpus[i])->info.index;
    screen_name(&job->req, cards, job->id, out);
}

/* --- the spec ----------------------------------------------------------------------------- */

static void
write_argv(struct jsonw *w, const struct job *job)
{
    jsonw_key(w, "argv");
    jsonw_array(w);
    if (job->req.argv) {
        for (char **a = job->req.argv; *a; a++)
            jsonw_str(w, *a);
    } else {
        jsonw_str(w, "/bin/sh");
        jsonw_str(w, "-c");
        jsonw_str(w, job->req.command);
    }
    jsonw_end_array(w);
    if (!job->req.argv)
        jsonw_kbool(w, "shell", true);
    if (job->req.env_setup)
        jsonw_kstr(w, "env_setup", job->req.env_setup);
    if (job->req.conda)
        jsonw_kstr(w, "conda", job->req.conda);
}

static void
write_cgroup(struct jsonw *w, const char *key, const char *base, const char *name)
{
    if (!base)
        return;
    auto_free char *path = xasprintf("%s/%s", base, name);
    jsonw_kstr(w, key, path);
}

/* Where v2 keeps a job together, groups of v1 are made only if there is something to confine:
 * they cost each job a tenth of a millisecond. Of many users' jobs each is confined in number.
 */
static bool
needs_v1(const struct daemon *d, const struct confinement *place, const struct demand *need)
{
    return !place->base || d->places.system || need->cpus > 0 || need->mem_mib > 0;
}

bool
launch_filters_devices(const struct daemon *d)
{
    return d->wants_device_filter && nursery_place(d->nursery)->has[CONFINE_DEVICES];
}

char *
launch_unenforced(const struct daemon *d, const struct job *job)
{
    const struct confinement *place = nursery_place(d->nursery);
    if (job->req.demand.mem_mib == 0 || place->has[CONFINE_MEMORY])
        return NULL;
    return xasprintf("--mem is not enforced by this daemon: %s ('berth doctor' says more)",
                     place->why[CONFINE_MEMORY]);
}

/* The cards that it may open. One whose device is not known keeps all within reach: a job that
 * cannot open its own card is worse. */
static void
write_minors(const struct daemon *d, const struct job *job, struct jsonw *w)
{
    const struct attempt *run = job->run;
    int n = run ? run->n_gpus : 0;
    if (!launch_filters_devices(d))
        return;
    for (int i = 0; i < n; i++)
        if (run->gpus[i] >= ledger_n_cards(d->ledger) ||
            ledger_card(d->ledger, run->gpus[i])->info.minor < 0)
            return;
    jsonw_key(w, "minors");
    jsonw_array(w);
    for (int i = 0; i < n; i++)
        jsonw_int(w, ledger_card(d->ledger, run->gpus[i])->info.minor);
    jsonw_end_array(w);
}

void
launch_write_groups(const struct daemon *d, const struct job *job, const char *name,
                    struct jsonw *w)
{
    static const char *const keys[CGROUP_V1_N] = {"cgroup_memory", "cgroup_pids", "cgroup_cpu"};
    const struct confinement *place = nursery_place(d->nursery);
    const struct demand *need = &job->req.demand;
    auto_free char *own = name ? NULL : xasprintf("job-%u.%d", job->id, job->run->number);
    write_cgroup(w, "cgroup", place->base, name ? name : own);
    for (int i = 0; i < CGROUP_V1_N && needs_v1(d, place, need); i++)
        write_cgroup(w, keys[i], place->v1[i], name ? name : own);
    jsonw_kint(w, "max_processes", d->config.job_max_processes);
    jsonw_kint(w, "cpus", need->cpus);
    jsonw_kint(w, "mem_mib", need->mem_mib);
    write_minors(d, job, w);
}

/* The folder is made each time it is needed: it may lie where things are cleaned away. Users
 * of the machine's daemon pass through it to sockets that are theirs. */
static int
write_attach(const struct daemon *d, const struct job *job, struct jsonw *w, struct err *e)
{
    auto_free char *path = launch_attach_path(d, job);
    if (!path)
        return 0;
    mode_t old = umask(d->places.system ? 022 : 077);
    int rc = file_mkdirs(d->places.attach, d->places.system ? 0711 : 0700, e);
    umask(old);
    if (rc)
        return -1;
    jsonw_kstr(w, "attach", path);
    if (!job->req.pty && !job->req.screen)
        return 0;
    jsonw_kbool(w, "pty", true);
    if (job->req.screen) {
        auto_buf struct buf name = BUF_INIT;
        launch_screen_name(d, job, &name);
        jsonw_kstr(w, "screen", buf_str(&name));
        jsonw_kbool(w, "no_client", !job->req.interactive);
    }
    jsonw_kint(w, "rows", job->req.rows);
    jsonw_kint(w, "columns", job->req.columns);
    return 0;
}

void
launch_add_account_rules(const struct daemon *d, struct jsonw *w)
{
    if (d->config.pam_service[0])
        jsonw_kstr(w, "pam", d->config.pam_service);
    if (d->config.locked_accounts == LOCKED_RUN)
        jsonw_kbool(w, "locked_runs", true);
    uint64_t dropped = 0;
    if (capabilities_parse(d->config.drop_capabilities, &dropped, NULL) == 0 && dropped)
        jsonw_kint(w, "drop_caps", (int64_t)dropped);
    if (d->config.no_new_privs == NO_NEW_PRIVS_ON)
        jsonw_kbool(w, "no_new_privs", true);
}

/* How large its log may become: the job may ask for less than the settings allow. 0: any size.
 */
static int64_t
log_max_mib(const struct daemon *d, const struct job *job)
{
    int64_t most = d->config.job_log_max_mib, own = job->req.log_max_mib;
    return own > 0 && (most == 0 || own < most) ? own : most;
}

static int
write_spec(struct daemon *d, const struct job *job, int lock, struct err *e)
{
    const struct attempt *run = job->run;
    auto_free char *log = launch_log_path(d, job);
    auto_free char *error = launch_error_path(d, job);
    auto_free char *mark = xasprintf("%s:%u.%d", d->instance, job->id, run->number);
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kint(&w, "job", job->id);
    jsonw_kint(&w, "attempt", run->number);
    jsonw_kstr(&w, "mark", mark);
    write_argv(&w, job);
    jsonw_kstr(&w, "cwd", job->cwd);
    jsonw_kint(&w, "umask", job->umask_bits);
    jsonw_kstr(&w, "log", log);
    if (error)
        jsonw_kstr(&w, "error", error);
    if (job->req.truncate)
        jsonw_kbool(&w, "truncate", true);
    jsonw_kbool(&w, "log_own", !job->req.log);
    jsonw_kbool(&w, "log_mkdir", d->places.system && !job->req.log);
    if (d->places.system) {
        jsonw_kint(&w, "uid", job->uid);
        jsonw_kstr(&w, "user", job->user);
        launch_add_account_rules(d, &w);
    }
    if (job->req.login)
        jsonw_kbool(&w, "login", true);
    if (job->rlimits)
        jsonw_kstr(&w, "rlimits", job->rlimits);
    jsonw_kint(&w, "limit_ms", job->req.limit_ms);
    jsonw_kint(&w, "grace_ms", job->req.grace_ms);
    jsonw_kint(&w, "log_max_mib", log_max_mib(d, job));
    jsonw_kint(&w, "log_reserve_mib", d->config.log_reserve_mib);
    if (job->req.warn_signal) {
        jsonw_kint(&w, "warn_signal", job->req.warn_signal);
        jsonw_kint(&w, "warn_ms", job->req.warn_ms);
        jsonw_kbool(&w, "warn_batch", job->req.warn_batch);
    }
    if (write_attach(d, job, &w, e))
        return -1;
    launch_write_groups(d, job, NULL, &w);
    jsonw_key(&w, "oom_patterns");
    jsonw_array(&w);
    for (char **p = d->config.oom_patterns; p && *p; p++)
        jsonw_str(&w, *p);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(&text, '\n');
    if (environ_add(d, job, mark, &text, e))
        return -1;
    if (file_write_all_at(lock, text.data, text.len, EXITREC_HEAD_BYTES) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write what is to be run");
    return 0;
}

/* --- processes ---------------------------------------------------------------------------- */

/* The folder of attempts' folders again: somebody has cleared it away under us. Not so the
 * state around it, without which nothing makes sense. */
static int
remake_jobs(struct daemon *d, struct err *e)
{
    auto_free char *path = xasprintf("%s/jobs", d->places.state);
    if (mkdir(path, 0700) && errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", path);
    log_warn("event=jobs-folder-remade path=%s it was removed", path);
    close(d->jobs_fd);
    d->jobs_fd = fd;
    return 0;
}

static int
make_dir(struct daemon *d, const char *name, struct err *e)
{
    int rc = mkdirat(d->jobs_fd, name, 0700);
    if (rc && errno == ENOENT) {
        if (remake_jobs(d, e))
            return -1;
        rc = mkdirat(d->jobs_fd, name, 0700);
    }
    if (rc)
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s/jobs/%s",
                         d->places.state, name);
    return 0;
}

/* One that is there already is of a start that was taken back. */
static int
make_new_dir(struct daemon *d, const struct job *job, const char *name, struct err *e)
{
    if (make_dir(d, name, e) == 0)
        return 0;
    if (e->errnum != EEXIST)
        return -1;
    launch_remove_folder(d, job->id, job->run->number);
    return make_dir(d, name, e);
}

int
launch_make_folder(struct daemon *d, const struct job *job, struct err *e)
{
    char name[32], lock[64];
    launch_folder(job->id, job->run->number, name);
    snprintf(lock, sizeof lock, "%s/lock", name);
    if (make_new_dir(d, job, name, e))
        return -1;
    crash_point("daemon-folder-made");
    int fd = openat(d->jobs_fd, lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot make %s/jobs/%s", d->places.state, lock);
        launch_remove_folder(d, job->id, job->run->number);
        return -1;
    }
    close(fd);
    return 0;
}

/* The folder and its lock, held, in which its spec stands. */
static int
fill_folder(struct daemon *d, const struct job *job, int *dir, int *lock, struct err *e)
{
    char name[32];
    launch_folder(job->id, job->run->number, name);
    *dir = openat(d->jobs_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the attempt's folder %s", name);
    *lock = openat(*dir, "lock", O_RDWR | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB))
        return err_errno(e, ERR_FAILED, errno, "cannot lock the attempt's folder %s", name);
    crash_point("daemon-folder-locked");
    return write_spec(d, job, *lock, e);
}

static int
launch(struct daemon *d, struct job *job, struct err *e)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (fill_folder(d, job, &dir, &lock, e))
        return -1;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    /* Watched first: what has been sent cannot be taken back. */
    if (watch_attempt(d, job, TAKE_FD(ours), e) ||
        nursery_ask(d->nursery, NURSERY_ATTEMPT, theirs, lock, dir, e))
        return -1;
    crash_point("daemon-after-spawn");
    return 0;
}

void
launch_attempt(struct daemon *d, struct job *job)
{
    struct err e = {0};
    if (launch(d, job, &e) == 0) {
        machine_launched(d);
        return;
    }
    log_error("job=%u attempt=%d event=not-launched %s", job->id, job->run->number, e.text);
    /* Everything up to here is ours: nothing that failed is the job's fault. */
    struct ending ending = ending_never_ran(e.errnum ? e.errnum : EIO, clock_wall_us());
    snprintf(ending.text, sizeof ending.text, "%.*s", (int)sizeof ending.text - 1, e.text);
    machine_trouble(d, e.text);
    watch_forget(d, job->id);
    jobs_attempt_ended(&d->state, job, &ending);
}

/* What a start needs of this folder: room for a name and for some bytes. */
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
launch_try_folders(struct daemon *d, struct err *e)
{
    auto_free char *jobs = xasprintf("%s/jobs", d->places.state);
    (void)unlinkat(d->jobs_fd, ".trial.d", AT_REMOVEDIR); /* a daemon that was killed left it */
    if (make_dir(d, ".trial.d", e))
        return -1;
    (void)unlinkat(d->jobs_fd, ".trial.d", AT_REMOVEDIR);
    if (try_folder(d->jobs_fd, jobs, e))
        return -1;
    auto_close int logs = open(d->places.logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (logs < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the folder of logs %s",
                         d->places.logs);
    return try_folder(logs, d->places.logs, e);
}

/* What there was has been removed: with a new folder what is left can still be found by its
 * mark, and ended. */
static int
fill_anew(struct daemon *d, const struct job *job, int *dir, int *lock, struct err *e)
{
    log_warn("job=%u attempt=%d event=folder-gone its folder has been removed", job->id,
             job->run->number);
    launch_remove_folder(d, job->id, job->run->number);
    return launch_make_folder(d, job, e) || fill_folder(d, job, dir, lock, e) ? -1 : 0;
}

static int
open_folder(struct daemon *d, const struct job *job, int *dir, int *lock, struct err *e)
{
    char name[32];
    *dir = openat(d->jobs_fd, launch_folder(job->id, job->run->number, name),
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the attempt's folder %s", name);
    *lock = openat(*dir, "lock", O_RDWR | O_CLOEXEC);
    if (*lock < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the lock of %s", name);
    return 0;
}

int
launch_sweeper(struct daemon *d, const struct job *job, bool *gone, struct err *e)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (open_folder(d, job, &dir, &lock, e)) {
        if (e->errnum != ENOENT && e->errnum != ENOTDIR && e->errnum != ELOOP)
            return -1;
        *gone = true;
        close(TAKE_FD(dir));
        if (fill_anew(d, job, &dir, &lock, e))
            return -1;
    }
    return nursery_call(d->nursery, NURSERY_SWEEP, lock, dir, e);
}
