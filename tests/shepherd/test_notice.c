/* Signals from a supervisor to a running command: the warning before its limit, and signals
 * sent by users. And the outcome of an attempt that is preempted or requeued. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "rig.h"

static void
finish(struct rig *r, struct exitrec *rec)
{
    json_decref(rig_await(r->ctl, &r->in, "ended"));
    rig_recorded(r);
    assert_int_equal(rig_wait(r), 0);
    assert_int_equal(rig_record(r, rec), 1);
}

static int64_t
await_warned(struct rig *r)
{
    json_t *warned = rig_await(r->ctl, &r->in, "warned");
    int64_t at_us = json_integer_value(json_object_get(warned, "at_us"));
    assert_int_equal(json_integer_value(json_object_get(warned, "signal")), SIGUSR2);
    json_decref(warned);
    return at_us;
}

/* The job saves its work on the warning and exits before the limit: no time limit was
 * reached. */
static void
test_warned_before_the_limit(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap 'exit 7' USR2; echo 1 >$T/ready; while :; do sleep 0.01; done");
    rig_make_fifo(&r, "ready");
    rig_set_int(&r, "limit_ms", 3600 * 1000);
    rig_set_int(&r, "warn_ms", 3600 * 1000 - 7000);
    rig_set_int(&r, "warn_signal", SIGUSR2);
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    int64_t at_us = await_warned(&r);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 7);
    assert_int_equal(rec.warned_us, at_us);
    /* The limit counts from before the process was created, which may take a while. */
    assert_true(at_us - rec.started_us >= 3000 * 1000);
    rig_close(&r);
}

/* A job that ignores the warning is stopped at the limit, and was warned once. */
static void
test_limit_stands_behind_the_warning(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap 'echo warned' USR2; while :; do sleep 0.01; done");
    rig_set_int(&r, "limit_ms", 12000);
    rig_set_int(&r, "warn_ms", 6000);
    rig_set_int(&r, "warn_signal", SIGUSR2);
    rig_start(&r);
    await_warned(&r);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_TIMEOUT);
    assert_true(rec.warned_us > 0);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    const char *said = strstr(buf_str(&log), "warned\n");
    assert_non_null(said);
    assert_null(strstr(said + 1, "warned\n"));
    rig_close(&r);
}

/* The shell of a line like `prepare; python train.py` traps nothing, and does not die of a
 * signal meant for the program it waits for. */
static void
test_notice_passes_over_the_waiting_shell(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "/bin/sh -c 'trap \"exit 9\" USR2; echo 1 >$0/ready; while :; do sleep 0.01; "
                 "done' $T; echo child said $?; exit 4");
    rig_make_fifo(&r, "ready");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    rig_say(r.ctl, "{\"op\":\"signal\",\"signal\":12}\n");
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 4);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    assert_non_null(strstr(buf_str(&log), "child said 9\n"));
    rig_close(&r);
}

/* No child to receive it: then it goes to the shell. */
static void
test_notice_to_a_lone_shell(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "echo 1 >$T/ready; read x <$T/never");
    rig_make_fifo(&r, "ready");
    rig_make_fifo(&r, "never");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    rig_say(r.ctl, "{\"op\":\"signal\",\"signal\":12}\n");
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_SIGNALED);
    assert_int_equal(rec.ending.signal, SIGUSR2);
    rig_close(&r);
}

/* Each row: the messages sent to it, in this order, and the outcome. */
static void
test_why_it_was_stopped(void **state)
{
    static const struct {
        const char *said[2];
        enum outcome outcome;
        const char *by, *text;
    } rows[] = {
        {{"{\"op\":\"cancel\",\"why\":\"preempt\",\"by\":\"\"}\n"},
         OUTCOME_PREEMPTED,
         "",
         "preempted by a job of higher priority"},
        {{"{\"op\":\"cancel\",\"why\":\"requeue\",\"by\":\"bob\"}\n"},
         OUTCOME_REQUEUED,
         "bob",
         "stopped to run again, asked for by bob"},
        {{"{\"op\":\"cancel\",\"why\":\"preempt\",\"by\":\"\"}\n",
          "{\"op\":\"cancel\",\"by\":\"alice\"}\n"},
         OUTCOME_CANCELLED,
         "alice",
         "cancelled by alice"},
        {{"{\"op\":\"cancel\",\"by\":\"alice\"}\n",
          "{\"op\":\"cancel\",\"why\":\"requeue\",\"by\":\"bob\"}\n"},
         OUTCOME_CANCELLED,
         "alice",
         "cancelled by alice"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exitrec rec;
        struct rig r;
        rig_open(&r, "trap 'read x <$T/go; exit 3' TERM; echo 1 >$T/ready; while :; do sleep "
                     "0.01; done");
        rig_make_fifo(&r, "ready");
        rig_make_fifo(&r, "go");
        rig_start(&r);
        rig_read_fifo(&r, "ready");
        rig_say(r.ctl, rows[i].said[0]);
        if (rows[i].said[1])
            rig_say(r.ctl, rows[i].said[1]);
        rig_say(r.ctl, "{\"op\":\"cancel\",\"why\":\"requeue\",\"grace_ms\":0}\n");
        finish(&r, &rec);
        assert_int_equal(rec.ending.outcome, rows[i].outcome);
        assert_string_equal(rec.by, rows[i].by);
        assert_memory_equal(rec.ending.text, rows[i].text, strlen(rows[i].text));
        rig_close(&r);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warned_before_the_limit),
        cmocka_unit_test(test_limit_stands_behind_the_warning),
        cmocka_unit_test(test_notice_passes_over_the_waiting_shell),
        cmocka_unit_test(test_notice_to_a_lone_shell),
        cmocka_unit_test(test_why_it_was_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
