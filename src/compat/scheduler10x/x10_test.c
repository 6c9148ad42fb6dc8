/* `scheduler_10x test`: checks the installation. The sample config must load, a line must
 * parse as documented, and jobs must run on simulated GPUs, with a daemon in a temporary
 * folder that is removed afterwards. Nothing of the user's is touched. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/compat.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"
#include "sys/spawn.h"
#include "wire/places.h"

#define FOLDERS 16

static int
put_file(const char *path, const struct buf *text, struct err *e)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || file_write_all(fd, text->data, text->len) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    return 0;
}

static int
test_config(const char *dir, int n, struct err *e)
{
    auto_free char *path = xasprintf("%s/config.json", dir);
    auto_buf struct buf text = BUF_INIT;
    struct x10_config c;
    int rc;

    (void)n;
    x10_config_sample(&text);
    x10_config_init(&c);
    rc = put_file(path, &text, e) < 0 || x10_config_read(&c, path, e) < 0 ||
                 x10_config_check(&c, e) < 0
             ? -1
             : 0;
    x10_config_free(&c);
    return rc;
}

static int
test_line(const char *dir, int n, struct err *e)
{
    static const char line[] = "-1,/data3/train.py,env,--lr 1 'a b' --mode test,0-1,3";
    const struct sched_table table = {.standard = 1};
    const struct sched_rules rules = {&table, 4, true};
    auto_buf struct buf why = BUF_INIT;
    struct sched_spec spec;
    bool good;

    (void)dir;
    (void)n;
    if (sched_line_parse(line, sizeof line - 1, &rules, &spec, &why) != SCHED_LINE_JOB)
        return err_set(e, ERR_FAILED, "%s", buf_str(&why));
    good = spec.priority == -1 && spec.allowed == 0xb && strcmp(spec.args[2], "a b") == 0 &&
           strcmp(spec.mode, "test") == 0;
    sched_spec_free(&spec);
    return good ? 0 : err_set(e, ERR_FAILED, "a line is not read as it is written");
}

/* Run `berth --dir INSTANCE words...` without output. */
static int
run_berth(const char *instance, const char *verb, char *const *words, struct err *e)
{
    auto_free char *dir = xstrdup(instance), *first = xstrdup(verb);
    auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    auto_free char *berth = places_program("berth", e);
    char *argv[] = {berth, "--dir", dir, first, words[0], words[1], words[2], words[3], NULL};
    const struct spawn s = {.argv = argv,
                            .envp = environ,
                            .fds = {null_fd, null_fd, null_fd},
                            .n_fds = 3,
                            .cgroup_fd = -1};
    enum spawn_stage stage;
    int errnum = 0, status = 0;
    pid_t pid = berth ? spawn_process(&s, &errnum, &stage) : -1;

    if (!berth)
        return -1;
    if (pid < 0)
        return err_errno(e, ERR_FAILED, errnum, "cannot run berth");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0 ? 0 : err_set(e, ERR_FAILED, "berth %s failed", verb);
}

static int
run_jobs(const char *dir, int n, struct err *e)
{
    auto_free char *jobs = xasprintf("%s/jobs", dir), *instance = xasprintf("%s/berth", dir);
    char *run_words[] = {"--sim", "4", jobs, NULL},
         *stop_words[] = {"stop", "--cancel", NULL, NULL};
    auto_buf struct buf text = BUF_INIT;
    int rc;

    for (int i = 0; i < n; i++)
        buf_addf(&text, "[share=0.5] test $CUDA_VISIBLE_DEVICES -ge 0 # %d\n", i);
    if (put_file(jobs, &text, e) < 0)
        return -1;
    rc = run_berth(instance, "run", run_words, e);
    if (run_berth(instance, "daemon", stop_words, rc == 0 ? e : NULL) < 0)
        return -1;
    return rc;
}

static const struct {
    const char *name;
    bool quick;
    int (*run)(const char *dir, int n, struct err *e);
    int n; /* number of jobs */
} tests[] = {
    {"the sample configuration loads", true, test_config, 0},
    {"a line of the jobs file is read", true, test_line, 0},
    {"jobs share simulated GPUs", true, run_jobs, 4},
    {"1000 jobs on simulated GPUs", false, run_jobs, 1000},
};

static int
on_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
x10_test(bool quick)
{
    const char *place = getenv("TMPDIR");
    auto_free char *dir =
        xasprintf("%s/scheduler_10x-test.XXXXXX", place && *place ? place : "/tmp");
    int failed = 0, n = 0;

    /* Ctrl-C ends the child processes; ignore it here to remove the folder. */
    (void)signal(SIGINT, SIG_IGN);
    if (!mkdtemp(dir))
        return x10_fail("Error: cannot make the folder %s: %s", dir, strerror(errno));
    (void)compat_say("🧪 Running %s tests", quick ? "quick" : "all");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        struct err e = {0};

        if (quick && !tests[i].quick)
            continue;
        n++;
        if (tests[i].run(dir, tests[i].n, &e) == 0) {
            (void)compat_say("✅ %s", tests[i].name);
        } else {
            failed++;
            (void)x10_fail("%s: %s", tests[i].name, e.text);
        }
    }
    (void)nftw(dir, on_entry, FOLDERS, FTW_DEPTH | FTW_PHYS);
    (void)compat_say("%d of %d passed", n - failed, n);
    return failed ? 1 : 0;
}
