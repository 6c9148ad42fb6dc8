/* Set-up before the command: it runs in the same shell, and if it fails the command does not
 * run, whatever its exit status. conda is a folder with a conda.sh that does what the tests
 * need. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "rig.h"

static void
expect_log(const struct rig *r, const char *want)
{
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(r, &log);
    if (!strstr(buf_str(&log), want))
        fail_msg("the log has nothing like '%s'; it is: %s", want, buf_str(&log));
}

static void
open_command(struct rig *r, const char *setup, const char *command)
{
    rig_open(r, command);
    json_object_set_new(r->spec, "shell", json_true());
    rig_set_text(r, "cwd", r->dir);
    if (setup)
        rig_set_text(r, "env_setup", setup);
}

/* The command line sees what was set up, in whichever way; so do the programs it starts. */
static void
test_the_command_has_what_was_set_up(void **state)
{
    (void)state;
    static const struct {
        const char *setup, *command, *log;
        int code;
    } rows[] = {
        {"export A=b", "echo got $A; exit 7", "got b", 7},
        {"f() { echo called $1; }", "f x", "called x", 0},
        {"A='two  words'", "echo \"$A\"", "two  words", 0},
        {"declare -A m; m[k]=v", "echo ${m[k]}", "v", 0},
        {"shopt -s nullglob", "echo none: /nowhere/*", "none:\n", 0},
        {"set -- left over", "echo \"<$*>\"", "<>", 0},
        {"echo \"args: <$*>\"", "true", "args: <>", 0},
        {"cd /usr", "pwd", "/usr", 0},
        {"return 0; exit 9", "echo went on", "went on", 0},
        {"false; true", "exit 3", "", 3},
        {"# a remark", "echo fine", "fine", 0},
        {"cat <<X\ntext\nX", "echo behind", "text\nbehind", 0},
        {"trap 'echo at the end' EXIT", "/bin/true", "at the end", 0},
        {"export A=b", "printenv A", "b", 0},
        {"alias x=y; IFS=/", "echo a  b", "a b", 0},
        {":", "no-such-program", "bash: line 1: no-such-program: command not found\n", 127},
        {":\n:", "true\n[ 1", "bash: line 2: [: missing `]'\n", 2},
        {":", "/dev/null", "bash: line 1: /dev/null: Permission denied\n", 126},
        {":", "echo $((1/0)); true", "bash: line 1: 1/0: division by 0", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig r;
        struct exitrec rec;
        open_command(&r, rows[i].setup, rows[i].command);
        rig_run(&r, &rec);
        if (rec.ending.outcome != OUTCOME_EXITED || rec.ending.code != rows[i].code)
            fail_msg("'%s', '%s': %d, %d, %s", rows[i].setup, rows[i].command,
                     rec.ending.outcome, rec.ending.code, rec.ending.text);
        expect_log(&r, rows[i].log);
        rig_close(&r);
    }
}

/* However the set-up ends, the command does not run. */
static void
test_without_its_setup_nothing_runs(void **state)
{
    (void)state;
    static const struct {
        const char *setup;
        int code, signal;
        const char *text;
    } rows[] = {
        {"exit 3", 3, 0, "exit 3"},
        {"false", 1, 0, "false"},
        {"source venv/bin/activate", 1, 0, "source venv/bin/activate"},
        {"return 4", 4, 0, "return 4"},
        {"set -e\nfalse\ntrue", 1, 0, "set -e false true"},
        {"exit 0", 0, 0, "exit 0"},
        {"exec true", 0, 0, "exec true"},
        {"no-such-program", 127, 0, "no-such-program"},
        {"if", 1, 0, "if"},
        {"echo 'open", 1, 0, "echo 'open"},
        {"kill -TERM $$", -1, 15, "kill -TERM $$"},
        {"echo $((1/0))", 1, 0, "echo $((1/0))"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig r;
        struct exitrec rec;
        open_command(&r, rows[i].setup, "echo THE COMMAND RAN; exit 0");
        rig_run(&r, &rec);
        if (rec.ending.outcome != OUTCOME_SETUP_FAILED || rec.ending.signal != rows[i].signal ||
            (rec.ending.code != rows[i].code && rows[i].code != 1) ||
            (rows[i].code == 1 && rec.ending.code < 1))
            fail_msg("'%s': %d, code %d, signal %d", rows[i].setup, rec.ending.outcome,
                     rec.ending.code, rec.ending.signal);
        assert_string_equal(rec.ending.text, rows[i].text);
        auto_buf struct buf log = BUF_INIT;
        rig_read_log(&r, &log);
        assert_null(strstr(buf_str(&log), "THE COMMAND RAN"));
        rig_close(&r);
    }
}

static void
test_a_program_takes_the_shells_place(void **state)
{
    (void)state;
    static const char *const argv[] = {"python3",
                                       "-c",
                                       "import os, sys; print(sys.argv[1:], os.environ['A'])",
                                       "$(echo no) `no` \"x\"",
                                       "a  b",
                                       NULL};
    struct rig r;
    struct exitrec rec;
    open_command(&r, "export A=b", "");
    json_object_set_new(r.spec, "shell", json_false());
    rig_set_argv(&r, argv);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.code, 0);
    expect_log(&r, "['$(echo no) `no` \"x\"', 'a  b'] b");
    rig_close(&r);
    /* The same for a command line that is a single program. */
    open_command(&r, "export A=b", "/bin/sleep 60");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    char comm[32] = "";
    auto_free char *path = xasprintf("/proc/%d/comm", (int)rig_started(&r));
    while (strcmp(comm, "sleep\n") != 0) { /* the process is the shell first */
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, comm, sizeof comm - 1);
        assert_true(n > 0);
        comm[n] = '\0';
    }
    rig_say(r.ctl, "{\"op\":\"cancel\",\"by\":\"a test\",\"grace_ms\":1000}\n");
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

/* As `conda init` leaves it: conda.sh defines a function, which has one environment. */
static void
make_conda(const struct rig *r, const char *at)
{
    auto_free char *folder = xasprintf("%s/%s/etc/profile.d", r->dir, at);
    auto_free char *file = xasprintf("%s/conda.sh", folder);
    assert_int_equal(file_mkdirs(folder, 0700, NULL), 0);
    auto_free char *text =
        xasprintf("conda() {\n"
                  "  [ \"$1\" = activate ] || return 2\n"
                  "  [ \"$2\" = torch ] || { echo \"no environment: $2\" >&2; return 1; }\n"
                  "  export CONDA_DEFAULT_ENV=$2 FOUND=%s ARGS=\"<$*>\"\n"
                  "}\n",
                  at);
    auto_close int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
test_conda_is_found_and_activated(void **state)
{
    (void)state;
    /* made: which of them exist; the first in the search order wins */
    static const struct {
        const char *made[3], *prefix, *env, *setup, *log;
        int code;
    } rows[] = {
        {{"base", "anaconda3"}, "base/envs/x", "torch", NULL, "torch base", 0},
        {{"base", "anaconda3"}, "base", "torch", NULL, "torch base", 0},
        {{"anaconda3", "miniconda3"}, NULL, "torch", NULL, "torch anaconda3", 0},
        {{"miniconda3"}, "gone/envs/x", "torch", NULL, "torch miniconda3", 0},
        {{"miniconda3"}, NULL, "torch", "test $CONDA_DEFAULT_ENV = torch", "torch mini", 0},
        {{"miniconda3"}, NULL, "tensorflow", "echo NOT REACHED", "no environment: tensor", 1},
        {{NULL}, NULL, "torch", "echo NOT REACHED", "berth: there is no conda", 127},
        {{NULL}, NULL, "", "conda activate", "berth: there is no conda", 127},
        {{"miniconda3"}, NULL, "a b; touch x", NULL, "no environment: a b; touch x", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig r;
        struct exitrec rec;
        open_command(&r, rows[i].setup, "echo $CONDA_DEFAULT_ENV $FOUND; echo THE COMMAND RAN");
        rig_set_text(&r, "conda", rows[i].env);
        auto_free char *home = xasprintf("HOME=%s", r.dir);
        auto_free char *prefix =
            xasprintf("CONDA_PREFIX=%s/%s", r.dir, rows[i].prefix ? rows[i].prefix : "");
        rig_add_env(&r, home);
        if (rows[i].prefix)
            rig_add_env(&r, prefix);
        for (int k = 0; k < 3 && rows[i].made[k]; k++)
            make_conda(&r, rows[i].made[k]);
        if (rows[i].prefix && strchr(rows[i].prefix, '/')) {
            auto_free char *envs = xasprintf("%s/base/envs/x", r.dir);
            assert_int_equal(file_mkdirs(envs, 0700, NULL), 0);
        }
        rig_run(&r, &rec);
        if (rec.ending.code != rows[i].code ||
            rec.ending.outcome != (rows[i].code ? OUTCOME_SETUP_FAILED : OUTCOME_EXITED))
            fail_msg("row %zu: %d, code %d, %s", i, rec.ending.outcome, rec.ending.code,
                     rec.ending.text);
        if (rows[i].code && !strstr(rec.ending.text, rows[i].env))
            fail_msg("row %zu: %s", i, rec.ending.text);
        expect_log(&r, rows[i].log);
        if (rows[i].code) {
            auto_buf struct buf log = BUF_INIT;
            rig_read_log(&r, &log);
            assert_null(strstr(buf_str(&log), "THE COMMAND RAN"));
            assert_null(strstr(buf_str(&log), "NOT REACHED"));
        }
        rig_close(&r);
    }
}

static void
test_without_bash_it_is_said(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    open_command(&r, "true", "echo THE COMMAND RAN");
    json_object_set_new(r.spec, "env", json_array());
    rig_add_env(&r, "PATH=/nowhere");
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_NOT_STARTED);
    assert_int_equal(rec.ending.errno_value, ENOENT);
    assert_string_equal(rec.ending.text,
                        "cannot execute 'bash', which its set-up needs: No such "
                        "file or directory");
    rig_close(&r);
}

/* A command line over the maximum argument length, and a set-up of many lines. */
static void
test_long_texts(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    auto_buf struct buf command = BUF_INIT, setup = BUF_INIT;
    buf_adds(&command, "n=0;");
    for (int i = 0; i < 20000; i++)
        buf_adds(&command, " n=$((n+1));");
    buf_adds(&command, " echo n $n of $total; exit 5");
    buf_adds(&setup, "total=0\n");
    for (int i = 0; i < 1500; i++)
        buf_adds(&setup, "total=$((total+1))\n");
    open_command(&r, buf_str(&setup), buf_str(&command));
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 5);
    expect_log(&r, "n 20000 of 1500");
    rig_close(&r);
}

/* An end from outside gets its own outcome, also during set-up. */
static void
test_a_limit_while_it_is_set_up_is_a_limit(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    open_command(&r, "sleep 100", "echo THE COMMAND RAN");
    rig_set_int(&r, "limit_ms", 200);
    rig_set_int(&r, "grace_ms", 5000);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_TIMEOUT);
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_command_has_what_was_set_up),
        cmocka_unit_test(test_without_its_setup_nothing_runs),
        cmocka_unit_test(test_a_program_takes_the_shells_place),
        cmocka_unit_test(test_conda_is_found_and_activated),
        cmocka_unit_test(test_without_bash_it_is_said),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_a_limit_while_it_is_set_up_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
