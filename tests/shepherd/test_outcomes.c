/* Outcomes of an attempt: exit codes, signals, failed starts, out of memory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "rig.h"

static void
run_script(const char *script, struct exitrec *out)
{
    struct rig r;
    rig_open(&r, script);
    rig_run(&r, out);
    rig_close(&r);
}

static void
test_every_exit_code(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        struct exitrec rec;
        char script[32];
        snprintf(script, sizeof script, "exit %d", code);
        run_script(script, &rec);
        assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
        assert_int_equal(rec.ending.code, code);
        assert_int_equal(rec.ending.signal, 0);
        assert_string_equal(rec.ending.text, "");
    }
}

static void
test_every_deadly_signal(void **state)
{
    (void)state;
    static const int SIGNALS[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,
                                  SIGBUS,  SIGFPE,  SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2,
                                  SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGIO,   SIGSYS};
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
        struct exitrec rec;
        char script[64];
        snprintf(script, sizeof script, "ulimit -c 0; kill -%d $$", SIGNALS[i]);
        run_script(script, &rec);
        assert_int_equal(rec.ending.outcome, OUTCOME_SIGNALED);
        assert_int_equal(rec.ending.signal, SIGNALS[i]);
        assert_int_equal(rec.ending.code, -1);
    }
}

static void
test_times_and_usage(void **state)
{
    (void)state;
    struct exitrec rec;
    int64_t before = clock_wall_us();
    run_script("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", &rec);
    assert_true(rec.started_us >= before);
    assert_true(rec.ending.ended_us >= rec.started_us);
    assert_true(rec.ending.ended_us <= clock_wall_us());
    assert_true(rec.ending.run_ms <= (clock_wall_us() - before) / 1000);
    assert_true(rec.ending.cpu_ms >= 1);
    assert_true(rec.ending.max_rss_kib > 100);
    assert_string_equal(rec.boot_id, clock_boot_id());
}

/* Runs a job that cannot start; checks that it did not, and the error. */
static void
expect_not_started(struct rig *r, int errnum, const char *words)
{
    struct exitrec rec;
    rig_run(r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_NOT_STARTED);
    assert_int_equal(rec.ending.errno_value, errnum);
    assert_int_equal(rec.ending.code, -1);
    assert_int_equal(rec.ending.signal, 0);
    assert_int_equal(rec.started_us, 0);
    if (!strstr(rec.ending.text, words))
        fail_msg("'%s' does not say '%s'", rec.ending.text, words);
    rig_close(r);
}

static void
test_command_not_found(void **state)
{
    (void)state;
    static const char *const ARGV[] = {"pytohn", "train.py", NULL};
    struct rig r;
    rig_open(&r, "");
    rig_set_argv(&r, ARGV);
    expect_not_started(&r, ENOENT, "cannot execute 'pytohn': No such file or directory");
}

static void
write_file(const struct rig *r, const char *name, const char *text, mode_t mode)
{
    auto_free char *path = xasprintf("%s/%s", r->dir, name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
test_file_that_may_not_be_executed(void **state)
{
    (void)state;
    static const char *const ARGV[] = {"./plain", NULL};
    struct rig r;
    rig_open(&r, "");
    rig_set_argv(&r, ARGV);
    rig_set_text(&r, "cwd", r.dir);
    write_file(&r, "plain", "echo no\n", 0600);
    expect_not_started(&r, EACCES, "cannot execute './plain': Permission denied");
}

static void
test_missing_interpreter_is_named(void **state)
{
    (void)state;
    static const char *const ARGV[] = {"./script", NULL};
    struct rig r;
    rig_open(&r, "");
    rig_set_argv(&r, ARGV);
    rig_set_text(&r, "cwd", r.dir);
    write_file(&r, "script", "#!/no/such/python\n", 0700);
    expect_not_started(&r, ENOENT, "'./script' (its interpreter is missing)");
}

static void
test_script_without_first_line(void **state)
{
    (void)state;
    static const char *const ARGV[] = {"script", "7", NULL};
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "");
    rig_set_argv(&r, ARGV);
    auto_free char *path = xasprintf("PATH=/no/where::%s", r.dir);
    json_object_set_new(r.spec, "env", json_array());
    rig_add_env(&r, path);
    write_file(&r, "script", "exit $1\n", 0700);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.code, 7);
    rig_close(&r);
}

static void
test_no_working_folder(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "exit 0");
    rig_set_text(&r, "cwd", "/no/such/folder");
    expect_not_started(&r, ENOENT, "cannot enter the working folder /no/such/folder: No such");
}

static void
test_log_cannot_be_opened(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "exit 0");
    rig_set_text(&r, "log", "/no/such/folder/log");
    json_object_set_new(r.spec, "log_mkdir", json_true());
    expect_not_started(&r, ENOENT, "cannot open the log /no/such/folder/log: No such file");
    rig_open(&r, "exit 0");
    rig_set_text(&r, "log", r.dir);
    expect_not_started(&r, EISDIR, "Is a directory");
    rig_open(&r, "exit 0");
    rig_make_fifo(&r, "fifo");
    auto_free char *fifo = xasprintf("%s/fifo", r.dir);
    rig_set_text(&r, "log", fifo);
    expect_not_started(&r, ENXIO, "cannot open the log");
}

static void
test_log_folders_are_made(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "echo hello");
    auto_free char *log = xasprintf("%s/logs/1.log", r.dir);
    rig_set_text(&r, "log", log);
    json_object_set_new(r.spec, "log_mkdir", json_true());
    rig_run(&r, &rec);
    auto_buf struct buf text = BUF_INIT;
    rig_read_log(&r, &text);
    assert_string_equal(buf_str(&text), "hello\n");
    auto_free char *dir = xasprintf("%s/logs", r.dir);
    unlink(log);
    rmdir(dir);
    rig_close(&r);

    /* Everything that a user can choose; the error names the path that is not a folder. */
    rig_open(&r, "echo hello; echo trouble >&2");
    auto_free char *other = xasprintf("%s/a/b/c/1.log", r.dir);
    auto_free char *error = xasprintf("%s/a/e/1.err", r.dir);
    rig_set_text(&r, "log", other);
    rig_set_text(&r, "error", error);
    rig_run(&r, &rec);
    auto_buf struct buf out = BUF_INIT, err = BUF_INIT;
    assert_int_equal(file_read(other, 100, &out, NULL), 0);
    assert_int_equal(file_read(error, 100, &err, NULL), 0);
    assert_string_equal(buf_str(&out), "hello\n");
    assert_string_equal(buf_str(&err), "trouble\n");
    rig_close(&r);
    rig_open(&r, "exit 0");
    rig_set_text(&r, "log", "/dev/null/x/1.log");
    expect_not_started(&r, ENOTDIR, "cannot open the log");
}

static void
test_broken_spec_is_an_outcome(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "exit 0");
    json_object_del(r.spec, "argv");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_NOT_STARTED);
    assert_non_null(strstr(rec.ending.text, "'argv' is empty"));
    assert_int_equal(rig_started(&r), 0);
    rig_close(&r);
}

static void
test_output_is_appended(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "echo out; echo err >&2; umask; pwd; cat; echo $T $BERTH_MARK");
    write_file(&r, "log", "before\n", 0600);
    rig_set_int(&r, "umask", 027);
    rig_run(&r, &rec);
    auto_buf struct buf text = BUF_INIT;
    rig_read_log(&r, &text);
    auto_free char *want = xasprintf("before\nout\nerr\n0027\n/\n%s %s\n", r.dir, r.mark);
    assert_string_equal(buf_str(&text), want);
    rig_close(&r);
}

/* Own session, no terminal, nothing inherited above standard error, nothing blocked. */
static void
test_what_the_command_is_born_with(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "ps -o sid= -p $$ | grep -qw $$ || exit 1\n"
                 "grep -q '^SigBlk:.0000000000000000$' /proc/self/status || exit 3\n"
                 "grep -q '^SigIgn:.0000000000000000$' /proc/self/status || exit 4\n"
                 "[ \"$(readlink /proc/$$/fd/0)\" = /dev/null ] || exit 5\n"
                 "[ -z \"$BERTH_CRASH_AT\" ] || exit 6\n");
    r.crash_at = "nowhere";
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    rig_run(&r, &rec);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(rec.ending.code, 0);
    rig_close(&r);
}

/* ls has the listed folder open; nothing else may be. */
static void
test_no_descriptor_is_inherited(void **state)
{
    (void)state;
    static const char *const ARGV[] = {"ls", "/proc/self/fd", NULL};
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "");
    rig_set_argv(&r, ARGV);
    rig_run(&r, &rec);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    assert_string_equal(buf_str(&log), "0\n1\n2\n3\n");
    rig_close(&r);
}

/* A script of one megabyte, in a shell, with its $0 and arguments, and descriptor 3 free. */
static void
test_big_command(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    auto_buf struct buf text = BUF_INIT;
    buf_adds(&text, "if [ -e /dev/fd/3 ]; then echo 3 is open; fi\n");
    for (int i = 0; text.len < 1024 * 1024; i++)
        buf_addf(&text, "x%d=123456789\n", i % 50);
    buf_adds(&text, "echo \"$x7 $0 $1\"; exit 23");
    const char *const argv[] = {"/bin/sh", "-c", buf_str(&text), "name", "one", NULL};
    rig_open(&r, "");
    rig_set_argv(&r, argv);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 23);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    assert_string_equal(buf_str(&log), "123456789 name one\n");
    rig_close(&r);
}

/* Just below and just above the kernel's limit for one argument. */
static void
test_commands_around_the_kernels_bound(void **state)
{
    (void)state;
    for (size_t size = 131069; size <= 131074; size++) {
        struct exitrec rec;
        struct rig r;
        auto_buf struct buf text = BUF_INIT;
        buf_adds(&text, "exit 9 #");
        while (text.len < size)
            buf_addc(&text, 'x');
        rig_open(&r, buf_str(&text));
        rig_run(&r, &rec);
        assert_int_equal(rec.ending.code, 9);
        rig_close(&r);
    }
}

static void
test_variable_that_is_too_long(void **state)
{
    (void)state;
    struct rig r;
    auto_buf struct buf entry = BUF_INIT;
    buf_adds(&entry, "HUGE=");
    while (entry.len < 200000)
        buf_addc(&entry, 'x');
    rig_open(&r, "exit 0");
    rig_add_env(&r, buf_str(&entry));
    expect_not_started(&r, E2BIG, "the variable HUGE has 200000 bytes");
}

static void
expect_oom(const char *script, enum oom_kind want, const char *line)
{
    struct exitrec rec;
    run_script(script, &rec);
    assert_int_equal(rec.ending.oom, want);
    assert_string_equal(rec.ending.text, line);
}

static void
test_cuda_oom(void **state)
{
    (void)state;
    expect_oom("echo x; echo 'RuntimeError: CUDA Out Of Memory. Tried'; exit 1", OOM_CUDA,
               "RuntimeError: CUDA Out Of Memory. Tried");
    expect_oom("echo 'cuda out of memory'; exit 0", OOM_NONE, "");
    expect_oom("echo 'cuda out of memory' >&2; kill -9 $$", OOM_CUDA, "cuda out of memory");
    expect_oom("printf 'step 1\\rstep 2\\r\\033[31mcuda out of memory\\033[0m'; exit 1",
               OOM_CUDA, "\\x1B[31mcuda out of memory\\x1B[0m");
    /* far from the end it is not searched for */
    expect_oom("echo 'cuda out of memory'; yes | head -c 16384; exit 1", OOM_NONE, "");
    expect_oom("echo 'cuda out of memory'; yes | head -c 16000; exit 1", OOM_CUDA,
               "cuda out of memory");
}

static void
test_cuda_oom_line_is_cut(void **state)
{
    (void)state;
    struct exitrec rec;
    run_script("printf 'torch.OutOfMemoryError: %0500d\\n' 1; exit 1", &rec);
    assert_int_equal(rec.ending.oom, OOM_CUDA);
    assert_int_equal(strlen(rec.ending.text), 150);
    run_script("printf '%0500d torch.OutOfMemoryError: here\\n' 1; exit 1", &rec);
    assert_string_equal(rec.ending.text, "torch.OutOfMemoryError: here");
}

/* Output of an earlier attempt does not count. */
static void
test_cuda_oom_of_an_earlier_attempt(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "echo fine; exit 1");
    write_file(&r, "log", "CUDA out of memory\n", 0600);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.oom, OOM_NONE);
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exit_code),
        cmocka_unit_test(test_every_deadly_signal),
        cmocka_unit_test(test_times_and_usage),
        cmocka_unit_test(test_command_not_found),
        cmocka_unit_test(test_file_that_may_not_be_executed),
        cmocka_unit_test(test_missing_interpreter_is_named),
        cmocka_unit_test(test_script_without_first_line),
        cmocka_unit_test(test_no_working_folder),
        cmocka_unit_test(test_log_cannot_be_opened),
        cmocka_unit_test(test_log_folders_are_made),
        cmocka_unit_test(test_broken_spec_is_an_outcome),
        cmocka_unit_test(test_output_is_appended),
        cmocka_unit_test(test_what_the_command_is_born_with),
        cmocka_unit_test(test_no_descriptor_is_inherited),
        cmocka_unit_test(test_big_command),
        cmocka_unit_test(test_commands_around_the_kernels_bound),
        cmocka_unit_test(test_variable_that_is_too_long),
        cmocka_unit_test(test_cuda_oom),
        cmocka_unit_test(test_cuda_oom_line_is_cut),
        cmocka_unit_test(test_cuda_oom_of_an_earlier_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
