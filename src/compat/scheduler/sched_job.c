/* The wrapper process in every job of the drop-in schedulers: `berth compat scheduler-job`. It
 * runs python on the script, passes the GPUs by --cuda if configured, and writes the log in
 * the original format: a head, lines prefixed with OUT: and ERR:, and the result. It enforces
 * scheduler_10x's memory limit too. In a screen session the program gets the terminal itself.
 * It exits as its program exited; the supervisor above it does the rest. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "compat/compat.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler/x10_memory.h"
#include "sys/spawn.h"

#define MIB          1048576
#define NOT_FOUND    127
#define RULE         "------------------------------------------------------------"
#define DRAIN_ROUNDS 64 /* chunks read from the pipes after the program ended */

enum {
    JOB_ARG_NEED,
    JOB_ARG_HASH,
    JOB_ARG_LINE,
    JOB_ARG_CONDA,
    JOB_ARG_CUDA,
    JOB_ARG_SCREEN,
    JOB_ARG_MODE,
    JOB_ARG_MEMORY,
    JOB_ARGS
};

static const char *const names[JOB_ARGS] = {"--need", "--hash",   "--line", "--conda",
                                            "--cuda", "--screen", "--mode", "--memory-mib"};

struct sched_run {
    const char *said[JOB_ARGS]; /* NULL: not given */
    char **allowed;             /* NULL-terminated */
    char **words;               /* script and arguments */
    char *gpus;                 /* "0,1", ascending */
    struct sched_spec spec;
    bool piped;
    int out, err; /* read ends; -1: closed */
    int last;     /* stream of the last output */
    bool in_line;
    pid_t pid;
    struct memory_watch memory;
};

/* --- its arguments --- */

static bool
read_option(struct sched_run *j, char *word, size_t *n_allowed)
{
    size_t n = strcspn(word, "=");

    if (strncmp(word, "--allowed=", 10) == 0) {
        j->allowed[(*n_allowed)++] = word + 10;
        return true;
    }
    for (int i = 0; i < JOB_ARGS; i++) {
        if (strlen(names[i]) == n && strncmp(word, names[i], n) == 0) {
            j->said[i] = word[n] ? word + n + 1 : "";
            return true;
        }
    }
    return false;
}

static bool
read_words(struct sched_run *j, int argc, char **argv)
{
    size_t n_allowed = 0;
    int at = 1;

    while (at < argc && strcmp(argv[at], "--") != 0) {
        if (!read_option(j, argv[at++], &n_allowed))
            return false;
    }
    j->words = argv + at + 1;
    return at + 1 < argc && j->words[0][0];
}

static int
by_number(const void *a, const void *b)
{
    return (int)(*(const uint8_t *)a) - (int)(*(const uint8_t *)b);
}

/* BERTH_GPUS has indices, whereas CUDA_VISIBLE_DEVICES may name GPUs in other ways. */
static char *
read_gpus(void)
{
    const char *gpus = getenv("BERTH_GPUS");
    auto_buf struct buf out = BUF_INIT;
    uint8_t ids[GPU_MAX];
    int n = gpus && *gpus ? parse_index_list(gpus, ids, GPU_MAX, NULL) : 0;

    if (n > 0)
        qsort(ids, (size_t)n, 1, by_number);
    for (int i = 0; i < n; i++)
        buf_addf(&out, "%s%d", i ? "," : "", ids[i]);
    return xstrdup(buf_str(&out));
}

/* Ids as the job sees them in its mask: 0,1,... */
static char *
local_gpus(const char *gpus)
{
    auto_buf struct buf out = BUF_INIT;
    int n = 0;

    for (const char *at = gpus; *at; at += strspn(at, ",")) {
        buf_addf(&out, "%s%d", n ? "," : "", n);
        n++;
        at += strcspn(at, ",");
    }
    return xstrdup(buf_str(&out));
}

static const char *
find_python(void)
{
    for (const char *at = getenv("PATH"); at && *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        auto_free char *path = xasprintf("%.*s/python", (int)n, at);

        if (n > 0 && access(path, X_OK) == 0)
            return "python";
        at += n;
    }
    return "python3";
}

/* python -u script arguments. Each --cuda and its value is removed, and ours added. */
static char **
command_of(const struct sched_run *j)
{
    const char *how = j->said[JOB_ARG_CUDA];
    size_t n = 0, at = 0;

    while (j->words[n])
        n++;

    char **argv = xcalloc(n + 6, sizeof *argv);

    argv[at++] = xstrdup(find_python());
    argv[at++] = xstrdup("-u");
    for (size_t i = 0; i < n; i++) {
        if (how && i > 0 && strcmp(j->words[i], "--cuda") == 0)
            i += j->words[i + 1] != NULL;
        else
            argv[at++] = xstrdup(j->words[i]);
    }
    if (how) {
        argv[at++] = xstrdup("--cuda");
        argv[at++] = strcmp(how, "local") == 0 ? local_gpus(j->gpus) : xstrdup(j->gpus);
    }
    return argv;
}

static void
set_environment(const struct sched_run *j)
{
    const char *id = getenv("BERTH_JOB_ID");

    if (!j->said[JOB_ARG_MEMORY])
        return;
    setenv("GPU_SCHEDULER_JOB_ID", id ? id : "", 1);
    setenv("GPU_SCHEDULER_ASSIGNED_GPUS", j->gpus, 1);
    if (j->memory.limit_mib > 0) {
        auto_free char *bytes = xasprintf("%lld", (long long)j->memory.limit_mib * MIB);

        setenv("GPU_SCHEDULER_MEMORY_LIMIT", bytes, 1);
    }
}

/* --- its log --- */

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

/* The head: the job and its parameters. */
static void
put_head(const struct sched_run *j)
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

/* The foot; status is waitpid's. */
static void
put_foot(const struct sched_run *j, int status)
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

/* Replace an existing link: another project's job of the same number may have the same
 * name. */
static void
link_anew(const char *log, const char *name)
{
    auto_free char *temp = xasprintf("%s.%d", name, (int)getpid());

    if (symlink(log, temp) == 0 && rename(temp, name) < 0)
        (void)unlink(temp);
}

/* Link the log under the name the original used, where the original wrote it. */
static void
link_log(const struct sched_run *j)
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

/* Add output of one stream, with a prefix at the start of each line. */
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

/* Copy up to 64 KiB from the pipe of a stream (0: stdout, 1: stderr). False: nothing to read
 * now. */
static bool
copy_some(struct sched_run *j, int stream, int *fd)
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

/* --- running --- */

/* Also reap orphans, which we get as a subreaper under a memory limit. */
static bool
has_ended(const struct sched_run *j, int *status)
{
    pid_t pid;
    int any;

    while ((pid = waitpid(-1, &any, WNOHANG)) > 0) {
        if (pid != j->pid)
            continue;
        *status = any;
        return true;
    }
    return false;
}

static int
wait_for_program(struct sched_run *j, int signals)
{
    int status = 0;

    while (!has_ended(j, &status)) {
        struct pollfd p[3] = {{.fd = signals, .events = POLLIN},
                              {.fd = j->out, .events = POLLIN},
                              {.fd = j->err, .events = POLLIN}};
        struct signalfd_siginfo info;

        (void)poll(p, 3, memory_watch_wait_ms(&j->memory));
        if (p[0].revents)
            (void)!read(signals, &info, sizeof info);
        if (p[1].revents)
            (void)copy_some(j, 0, &j->out);
        if (p[2].revents)
            (void)copy_some(j, 1, &j->err);
        memory_watch_look(&j->memory);
    }
    /* Orphans may hold the pipes open, so read only what is in them now. */
    for (int i = 0; i < DRAIN_ROUNDS && copy_some(j, 0, &j->out); i++)
        continue;
    for (int i = 0; i < DRAIN_ROUNDS && copy_some(j, 1, &j->err); i++)
        continue;
    return status;
}

static int
make_pipes(struct sched_run *j, int ends[2])
{
    int out[2], err[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return -1;
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return -1;
    }
    j->out = out[0];
    j->err = err[0];
    ends[0] = out[1];
    ends[1] = err[1];
    return fcntl(j->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(j->err, F_SETFL, O_NONBLOCK) < 0 ? -1
                                                                                            : 0;
}

static int
start_program(struct sched_run *j, char **argv)
{
    int ends[2] = {-1, -1}, errnum = 0;
    enum spawn_stage stage;
    struct spawn s = {.argv = argv,
                      .envp = environ,
                      .path = getenv("PATH"),
                      .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
                      .n_fds = 3,
                      .cgroup_fd = -1};

    if (j->piped && make_pipes(j, ends) < 0)
        return compat_fail(1, NULL, "cannot make pipes: %s", strerror(errno));
    if (j->piped) {
        s.fds[1] = ends[0];
        s.fds[2] = ends[1];
    }
    j->pid = spawn_process(&s, &errnum, &stage);
    if (j->piped) {
        close(ends[0]);
        close(ends[1]);
    }
    if (j->pid < 0)
        return compat_fail(NOT_FOUND, NULL, "cannot run %s: %s", argv[0], strerror(errnum));
    return 0;
}

/* Exit as the program did. */
static int
end_as(const struct sched_run *j, int status)
{
    sigset_t set;

    if (j->memory.is_over)
        return SCHED_OVER_MEMORY;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    /* The program has dumped core already, if enabled; do not dump ours. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* Signals to the job reach the program directly; we stay to log its last output. */
static int
block_signals(void)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
run(struct sched_run *j)
{
    char **argv = command_of(j);
    auto_close int signals = block_signals();
    int64_t memory_mib = 0;
    int status;

    if (j->said[JOB_ARG_MEMORY])
        (void)parse_int(j->said[JOB_ARG_MEMORY], 0, INT32_MAX, &memory_mib, NULL);
    memory_watch_begin(&j->memory, memory_mib);
    set_environment(j);
    if (j->piped) {
        put_head(j);
        link_log(j);
    }
    status = start_program(j, argv);
    if (status == 0) {
        status = wait_for_program(j, signals);
        if (j->piped || j->memory.is_over)
            put_foot(j, status);
        status = end_as(j, status);
    }
    text_list_free(argv);
    return status;
}

int
compat_scheduler_job(int argc, char **argv)
{
    static const struct sched_table table = {.standard = 1};
    auto_free char **allowed = xcalloc((size_t)argc + 1, sizeof *allowed);
    struct sched_run j = {.allowed = allowed, .out = -1, .err = -1};
    auto_buf struct buf why = BUF_INIT;
    int status;

    if (!read_words(&j, argc, argv))
        return compat_fail(2, NULL,
                           "scheduler-job is what the scheduler runs; it is not for people");
    if (allowed[0] && !sched_script_allowed(allowed, j.words[0], &why))
        return compat_fail(SCHED_NOT_ALLOWED, NULL, "%s", buf_str(&why));
    j.gpus = read_gpus();
    j.piped = !j.said[JOB_ARG_SCREEN];
    j.spec.script = j.words[0];
    j.spec.args = j.words + 1;
    sched_spec_finish(&j.spec, &table);
    status = run(&j);
    free(j.gpus);
    return status;
}
