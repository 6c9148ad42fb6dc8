/* The log of a job of the drop-in schedulers, written by the process around it: see
 * sched_job.h. What a program prints is passed on as it comes, without waiting for the end
 * of a line. */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/sched_job.h"
#include "compat/scheduler/scheduler.h"

#define RULE "------------------------------------------------------------"

static void
put(const struct buf *b)
{
    (void)file_write_all(STDOUT_FILENO, b->data, b->len);
}

static void
add_arguments(struct buf *out, char *const *args)
{
    buf_addc(out, '[');
    for (char *const *arg = args; *arg; arg++) {
        if (arg != args)
            buf_adds(out, ", ");
        py_add_repr(out, *arg);
    }
    buf_adds(out, "]\n");
}

void
joblog_head(const struct sched_run *j)
{
    const char *id = getenv("BERTH_JOB_ID");
    auto_buf struct buf out = BUF_INIT;
    double need = 1;

    if (j->said[JOB_ARG_NEED])
        (void)py_float(j->said[JOB_ARG_NEED], &need);
    buf_addf(&out, "Job ID: %s\nJob Hash: %s\nOriginal Line: %s\n", id ? id : "?",
             j->said[JOB_ARG_HASH] && *j->said[JOB_ARG_HASH] ? j->said[JOB_ARG_HASH] : "nohash",
             j->said[JOB_ARG_LINE] ? j->said[JOB_ARG_LINE] : "");
    buf_addf(&out, "LLM Name: %s\nGPUs Required: %.2f\nMode Tag: %s\nScript: %s\n",
             j->spec.llm ? j->spec.llm : "None", need, j->spec.mode, j->words[0]);
    buf_addf(&out, "Conda Env: %s\nArguments: ",
             j->said[JOB_ARG_CONDA] ? j->said[JOB_ARG_CONDA] : "None");
    add_arguments(&out, j->words + 1);
    buf_addf(&out, "GPU ID(s) Assigned: %s\nStart Time: ", j->gpus);
    py_add_time(&out, PY_LOG, clock_wall_us());
    buf_adds(&out, "\n" RULE "\n");
    put(&out);
}

void
joblog_foot(const struct sched_run *j, int status)
{
    auto_buf struct buf out = BUF_INIT;

    if (j->in_line)
        buf_addc(&out, '\n');
    if (j->memory.is_over)
        buf_addf(&out, "The job used more than its %lld MiB of memory and was stopped.\n",
                 (long long)j->memory.limit_mib);
    buf_adds(&out, RULE "\nEnd Time: ");
    py_add_time(&out, PY_LOG, clock_wall_us());
    buf_addf(&out, "\nProcess finished with exit code: %d\n",
             WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    put(&out);
}

/* A link of that name may be there, to the log of another project's job of the same number. */
static void
link_anew(const char *log, const char *name)
{
    auto_free char *temp = xasprintf("%s.%d", name, (int)getpid());

    if (symlink(log, temp) == 0 && rename(temp, name) < 0)
        (void)unlink(temp);
}

/* The name by which the original wrote it, beside where it was started. */
void
joblog_link(const struct sched_run *j)
{
    char log[PATH_MAX];
    auto_free char *script = xstrdup(j->words[0]), *name = NULL;
    auto_buf struct buf stamp = BUF_INIT;
    ssize_t n = readlink("/proc/self/fd/1", log, sizeof log - 1);
    const char *id = getenv("BERTH_JOB_ID");
    struct stat st;

    if (n <= 0 || fstat(STDOUT_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    log[n] = '\0';
    if (j->said[JOB_ARG_MEMORY]) {
        auto_free char *dir = xstrdup(log);

        name = xasprintf("%s/direct_%s_%s.log", dirname(dir), id ? id : "?", j->gpus);
    } else {
        py_add_time(&stamp, PY_STAMP, clock_wall_us());
        name = xasprintf("job_%s_%s_%s_gpu%s_%s.log", basename(script), j->spec.mode,
                         j->said[JOB_ARG_HASH] && *j->said[JOB_ARG_HASH] ? j->said[JOB_ARG_HASH]
                                                                         : "nohash",
                         j->gpus, buf_str(&stamp));
    }
    link_anew(log, name);
}

/* Bytes of one stream, a prefix at the beginning of each line. */
static void
add_prefixed(struct sched_run *j, int stream, const char *bytes, size_t n, struct buf *out)
{
    if (j->in_line && j->last != stream) {
        buf_addc(out, '\n');
        j->in_line = false;
    }
    j->last = stream;
    while (n > 0) {
        const char *nl = memchr(bytes, '\n', n);
        size_t len = nl ? (size_t)(nl - bytes) + 1 : n;

        if (!j->in_line)
            buf_adds(out, stream == 0 ? "OUT: " : "ERR: ");
        buf_add(out, bytes, len);
        j->in_line = !nl;
        bytes += len;
        n -= len;
    }
}

/* False: nothing more now. */
bool
joblog_copy_some(struct sched_run *j, int stream, int *fd)
{
    auto_buf struct buf out = BUF_INIT;
    char bytes[65536];
    ssize_t n = *fd >= 0 ? read(*fd, bytes, sizeof bytes) : -1;

    if (n > 0) {
        add_prefixed(j, stream, bytes, (size_t)n, &out);
        put(&out);
        return true;
    }
    if (*fd >= 0 && n == 0) {
        close(*fd);
        *fd = -1;
    }
    return false;
}
