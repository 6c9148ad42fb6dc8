/* Writes the spec, what an attempt's supervisor is to do, behind the marks in the folder's
 * lock file: see launch_spec.h. */
#include "daemon/attempt/launch_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "core/queue/job.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/job_container.h"
#include "daemon/attempt/job_environ.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/log_names.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "sys/exitrec.h"

#define LOCK_TRIES    10
#define LOCK_PAUSE_NS 2000000

static void
write_argv(struct jsonw *w, const struct job *job)
{
    jsonw_karray(w, "argv");
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

/* Makes the folder each time, because it may be where old files are cleaned away. With the
 * machine's daemon, users pass through it to their own sockets. */
static int
write_attach(const struct instance *inst, const struct job *job, struct jsonw *w, struct err *e)
{
    auto_free char *path = launch_attach_path(inst, job);
    if (!path)
        return 0;
    mode_t old = umask(inst->places.system ? 022 : 077);
    int rc = file_mkdirs(inst->places.attach, inst->places.system ? 0711 : 0700, e);
    umask(old);
    if (rc)
        return -1;
    jsonw_kstr(w, "attach", path);
    if (!job->req.pty && !job->req.screen)
        return 0;
    jsonw_kbool(w, "pty", true);
    if (job->req.screen) {
        auto_buf struct buf name = BUF_INIT;
        launch_screen_name(inst, job, &name);
        jsonw_kstr(w, "screen", buf_str(&name));
        jsonw_kbool(w, "no_client", !job->req.interactive);
    }
    jsonw_kint(w, "rows", job->req.rows);
    jsonw_kint(w, "columns", job->req.columns);
    return 0;
}

/* Size limit of the job's log: the job may ask for less than the settings allow.
 * 0: unlimited. */
static int64_t
log_max_mib(const struct instance *inst, const struct job *job)
{
    int64_t most = inst->config.job_log_max_mib, own = job->req.log_max_mib;
    return own > 0 && (most == 0 || own < most) ? own : most;
}

static int
write_spec(struct attempts *a, const struct job *job, int lock, struct err *e)
{
    const struct attempt *run = job->run;
    auto_free char *log = launch_log_path(a->inst, job);
    auto_free char *error = launch_error_path(a->inst, job);
    auto_free char *mark = xasprintf("%s:%u.%d", a->inst->name, job->id, run->number);
    auto_buf struct buf text = BUF_INIT, env = BUF_INIT;
    struct jsonw w;
    int captured;
    if (environ_add(a, job, mark, &env, &captured, e) < 0)
        return -1;
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
    jsonw_kbool(&w, "log_mkdir", a->inst->places.system && !job->req.log);
    if (a->inst->places.system) {
        jsonw_kint(&w, "uid", job->uid);
        jsonw_kstr(&w, "user", job->user);
        confines_write_account(a->inst, &w);
    }
    if (job->req.login)
        jsonw_kbool(&w, "login", true);
    bool on_slurm = job->req.demand.engine == ENGINE_SLURM;
    if (on_slurm)
        jsonw_kbool(&w, "slurm", true);
    if (on_slurm && job->req.slurm_env)
        jsonw_kbool(&w, "slurm_env", true);
    if (job->rlimits && !on_slurm) /* on Slurm, sbatch passes them on */
        jsonw_kstr(&w, "rlimits", job->rlimits);
    jsonw_kint(&w, "limit_ms", job->req.limit_ms);
    jsonw_kint(&w, "grace_ms", job->req.grace_ms);
    jsonw_kint(&w, "log_max_mib", log_max_mib(a->inst, job));
    jsonw_kint(&w, "log_reserve_mib", a->inst->config.log_reserve_mib);
    if (job->req.warn_signal) {
        jsonw_kint(&w, "warn_signal", job->req.warn_signal);
        jsonw_kint(&w, "warn_ms", job->req.warn_ms);
        jsonw_kbool(&w, "warn_batch", job->req.warn_batch);
    }
    if (write_attach(a->inst, job, &w, e) < 0)
        return -1;
    if (!on_slurm)
        confines_write_groups(a, job, NULL, &w);
    confines_write_cpus(a, job, &w);
    mps_write(a->inst, job, &w);
    if (job->req.container)
        container_write(a->inst, job, captured, &w);
    jsonw_karray(&w, "oom_patterns");
    for (char **p = a->inst->config.oom_patterns; p && *p; p++)
        jsonw_str(&w, *p);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(&text, '\n');
    buf_add(&text, env.data, env.len);
    if (file_write_all_at(lock, text.data, text.len, EXITREC_HEAD_BYTES) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write what is to be run");
    return 0;
}

/* Waits briefly: a sweeper of an earlier daemon may hold the lock of a reused folder until it
 * sees that the attempt is another one. */
static int
take_lock(int lock)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (int i = 0; flock(lock, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* See launch_spec.h. The lock in a folder shared with nodes is not taken: nothing there checks
 * it, and the file system may not support locks. */
int
spec_fill_folder(struct attempts *a, const struct job *job, int *dir, int *lock, struct err *e)
{
    char name[32];
    folder_name(job->id, job->run->number, name);
    *dir = openat(shared_folder_fd_for(a->inst, job), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the attempt's folder %s", name);
    *lock = openat(*dir, "lock", O_RDWR | O_CLOEXEC);
    if (*lock < 0 || (!shared_folder_has(a->inst, job) && take_lock(*lock) < 0))
        return err_errno(e, ERR_FAILED, errno, "cannot lock the attempt's folder %s", name);
    crash_point("daemon-folder-locked");
    return write_spec(a, job, *lock, e);
}
