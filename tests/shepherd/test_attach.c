/* Clients attached to an interactive job: output in order however slowly one reads, input and
 * its end, terminals, reattaching at an offset, and which clients are admitted. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "rig.h"
#include "wire/attach_frames.h"

#define BIG_BYTES ((size_t)100 << 20)

/* One client. */
struct guest {
    int fd;
    struct buf in;
    struct buf out; /* the job's output, from the requested offset */
    json_t *hello;
    json_t *ended;
    uint64_t next; /* offset of the next byte; set by the first */
    bool some, refused;
};

static void
open_interactive(struct rig *r, const char *script, bool pty)
{
    rig_open(r, script);
    auto_free char *path = xasprintf("%s/attach.sock", r->dir);
    rig_set_text(r, "attach", path);
    if (pty)
        json_object_set_new(r->spec, "pty", json_true());
}

static int
try_guest(const struct rig *r)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/attach.sock", r->dir);
    return connect(fd, (struct sockaddr *)&addr, sizeof addr) ? -1 : TAKE_FD(fd);
}

static void
send_all(int fd, const struct buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->data + at, b->len - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
}

/* Waits until the command runs (rig_await "started") before anyone connects. */
static void
join(const struct rig *r, struct guest *g, const char *hello)
{
    auto_buf struct buf out = BUF_INIT;
    *g = (struct guest){.fd = try_guest(r)};
    assert_true(g->fd >= 0);
    attach_add(&out, ATTACH_HELLO, hello, strlen(hello));
    send_all(g->fd, &out);
}

static void
part(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    buf_free(&g->in);
    buf_free(&g->out);
    json_decref(g->hello);
    json_decref(g->ended);
}

static void
say(const struct guest *g, char type, const char *bytes, size_t n)
{
    auto_buf struct buf out = BUF_INIT;
    attach_add(&out, type, bytes, n);
    send_all(g->fd, &out);
}

static void
take(struct guest *g, const struct attach_frame *f)
{
    uint64_t offset;
    const char *bytes;
    size_t n;
    if (f->type == ATTACH_HELLO)
        g->hello = json_loadb(f->bytes, f->n, 0, NULL);
    else if (f->type == ATTACH_ENDED)
        g->ended = json_loadb(f->bytes, f->n, 0, NULL);
    else if (f->type == ATTACH_REFUSED)
        g->refused = true;
    else if (f->type == ATTACH_OUTPUT) {
        assert_int_equal(attach_get_output(f, &offset, &bytes, &n), 0);
        if (g->some)
            assert_int_equal(offset, g->next); /* no gap, no repetition */
        g->some = true;
        g->next = offset + n;
        buf_add(&g->out, bytes, n);
    }
}

/* One read; false at the end of the stream. */
static bool
hear(struct guest *g)
{
    char part_of[65536];
    struct attach_frame f;
    size_t at = 0;
    struct pollfd p = {.fd = g->fd, .events = POLLIN};
    if (poll(&p, 1, RIG_WAIT_MS) != 1)
        fail_msg("nothing came; so far: %s", buf_str(&g->out));
    ssize_t n = recv(g->fd, part_of, sizeof part_of, 0);
    if (n <= 0)
        return false;
    buf_add(&g->in, part_of, (size_t)n);
    while (attach_next(&g->in, &at, &f) == 1)
        take(g, &f);
    buf_drop(&g->in, at);
    return true;
}

static void
hear_text(struct guest *g, const char *text)
{
    while (!strstr(buf_str(&g->out), text))
        if (!hear(g))
            fail_msg("the end came before '%s'; there was: %s", text, buf_str(&g->out));
}

static void
hear_end(struct guest *g)
{
    while (!g->ended)
        if (!hear(g))
            fail_msg("the connection closed before the end; there was: %s", buf_str(&g->out));
}

static int
code_of(const struct guest *g)
{
    return (int)json_integer_value(json_object_get(g->ended, "code"));
}

static void
start(struct rig *r)
{
    rig_start(r);
    json_decref(rig_await(r->ctl, &r->in, "started"));
}

/* The daemon's part of the end, after which the supervisor has no reason to stay. */
static void
finish(struct rig *r)
{
    json_decref(rig_await(r->ctl, &r->in, "ended"));
    rig_recorded(r);
    assert_int_equal(rig_wait(r), 0);
    assert_int_equal(try_guest(r), -1);
    rig_close(r);
}

static void
test_input_output_and_exit_code(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "echo ready; read line; printf '%s\\r' \"got $line\"; cat; exit 5",
                     false);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    hear_text(&g, "ready\n");
    assert_string_equal(json_string_value(json_object_get(g.hello, "state")), "running");
    say(&g, ATTACH_INPUT, "hello\n\0\xff rest", 12);
    say(&g, ATTACH_EOF, NULL, 0);
    hear_end(&g);
    assert_int_equal(code_of(&g), 5);
    assert_int_equal(g.out.len, 6 + 10 + 6);
    assert_memory_equal(g.out.data, "ready\ngot hello\r\0\xff rest", 22);
    part(&g);
    finish(&r);
}

/* A client that does not read delays neither the job nor another client, and still misses
 * nothing. */
static void
test_a_hundred_megabytes_past_a_client_that_sleeps(void **state)
{
    (void)state;
    struct rig r;
    struct guest fast, slow;
    open_interactive(&r, "read go; yes 0123456789abcde | head -c 104857600; exit 3", false);
    start(&r);
    join(&r, &slow, "{}");
    join(&r, &fast, "{\"input\":true}");
    say(&fast, ATTACH_INPUT, "go\n", 3);
    hear_end(&fast);
    assert_int_equal(fast.out.len, BIG_BYTES);
    for (size_t i = 0; i < BIG_BYTES; i += 16)
        assert_memory_equal(fast.out.data + i, "0123456789abcde\n", 16);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_recorded(&r); /* recorded and out of the queue: it reads only now */
    hear_end(&slow);
    assert_int_equal(slow.out.len, BIG_BYTES);
    assert_memory_equal(slow.out.data, fast.out.data, BIG_BYTES);
    assert_int_equal(code_of(&slow), 3);
    part(&fast);
    part(&slow);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

static void
test_coming_back_where_one_was(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "echo one; read x; echo two; read x; echo three", false);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    hear_text(&g, "one\n");
    auto_free char *again =
        xasprintf("{\"input\":true,\"offset\":%llu}", (unsigned long long)g.next);
    part(&g);
    join(&r, &g, again);
    say(&g, ATTACH_INPUT, "\n", 1);
    hear_text(&g, "two\n");
    assert_string_equal(buf_str(&g.out), "two\n");
    struct guest late;
    join(&r, &late, "{\"tail\":3}");
    hear_text(&late, "wo\n");
    assert_string_equal(buf_str(&late.out), "wo\n");
    say(&late, ATTACH_INPUT, "\n", 1); /* it only watches: this input is dropped */
    say(&g, ATTACH_INPUT, "\n", 1);
    hear_end(&g);
    hear_end(&late);
    assert_string_equal(buf_str(&late.out), "wo\nthree\n");
    part(&late);
    part(&g);
    finish(&r);
}

/* If the log is appended to, a client sees only what this attempt wrote. */
static void
test_begins_with_the_attempt(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "echo mine; read x", false);
    auto_free char *log = xasprintf("%s/log", r.dir);
    auto_fclose FILE *f = fopen(log, "w");
    fprintf(f, "somebody else's\n");
    fflush(f);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    hear_text(&g, "mine\n");
    say(&g, ATTACH_EOF, NULL, 0);
    hear_end(&g);
    assert_string_equal(buf_str(&g.out), "mine\n");
    assert_int_equal(code_of(&g), 1);
    part(&g);
    finish(&r);
}

/* The job ends before anyone attaches: a client that comes a moment later still gets
 * everything. */
static void
test_a_job_that_is_over_at_once(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "echo done; exit 7", false);
    start(&r);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_recorded(&r);
    join(&r, &g, "{\"input\":true}");
    hear_end(&g);
    assert_string_equal(buf_str(&g.out), "done\n");
    assert_int_equal(code_of(&g), 7);
    assert_false(rig_lock_is_held(&r)); /* unread output blocks nothing */
    part(&g);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

/* The shell sleeps in pieces: input that comes before it sleeps would wait for a whole
 * read. */
static void
test_a_terminal(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r,
                     "trap 'stty size; exit 4' WINCH; tty -s && stty size; echo t >/dev/tty; "
                     "while :; do sleep 0.1; done",
                     true);
    rig_set_int(&r, "rows", 33);
    rig_set_int(&r, "columns", 111);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    hear_text(&g, "33 111\r\nt\r\n");
    assert_true(json_is_true(json_object_get(g.hello, "pty")));
    auto_buf struct buf size = BUF_INIT;
    attach_add_winsize(&size, 40, 120);
    send_all(g.fd, &size);
    hear_end(&g);
    hear_text(&g, "40 120\r\n");
    assert_int_equal(code_of(&g), 4);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    assert_string_equal(buf_str(&log), buf_str(&g.out));
    part(&g);
    finish(&r);
}

/* The terminal decides the meaning of Ctrl-C and end of file. */
static void
test_keys_of_a_terminal(void **state)
{
    static const struct {
        const char *script, *keys;
        int code, signal;
    } rows[] = {
        {"exec cat", "\003", -1, SIGINT},
        {"echo up; cat; exit 6", "\004", 6, 0},
        {"stty -isig -icanon -echo; echo up; head -c1 | od -An -c; exit 2", "\003", 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig r;
        struct guest g;
        open_interactive(&r, rows[i].script, true);
        start(&r);
        join(&r, &g, "{\"input\":true}");
        if (strstr(rows[i].script, "up"))
            hear_text(&g, "up\r\n");
        say(&g, ATTACH_INPUT, rows[i].keys, 1);
        hear_end(&g);
        assert_int_equal(json_integer_value(json_object_get(g.ended, "signal")),
                         rows[i].signal);
        if (rows[i].code >= 0)
            assert_int_equal(code_of(&g), rows[i].code);
        part(&g);
        finish(&r);
    }
}

/* The last output of a terminal whose processes have all ended reaches the log and the
 * clients. */
static void
test_a_terminals_last_words(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "stty -onlcr; read go; yes 0123456789abcde | head -c 1048576", true);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    say(&g, ATTACH_INPUT, "\n", 1);
    hear_end(&g);
    size_t echo = g.out.len - ((size_t)1 << 20);
    assert_true(echo <= 2); /* the newline that was typed */
    for (size_t i = echo; i < g.out.len; i += 16)
        assert_memory_equal(g.out.data + i, "0123456789abcde\n", 16);
    part(&g);
    finish(&r);
}

static void
test_a_terminal_is_told_of_the_limit(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "exec sleep 100", true);
    rig_set_int(&r, "limit_ms", 5000);
    start(&r);
    join(&r, &g, "{\"input\":true}");
    hear_end(&g);
    hear_text(&g, "berth: job 12 has 0.5s left of its time limit\r\n");
    assert_string_equal(json_string_value(json_object_get(g.ended, "outcome")), "timeout");
    part(&g);
    finish(&r);
}

/* One after the other, so many that both places are reused each time. */
static void
test_more_clients_than_there_is_room_for(void **state)
{
    (void)state;
    struct rig r;
    struct guest guests[17];
    open_interactive(&r, "read x; echo over", false);
    start(&r);
    for (size_t i = 0; i < 16; i++) {
        join(&r, &guests[i], "{\"input\":true}");
        while (!guests[i].hello)
            assert_true(hear(&guests[i]));
    }
    guests[16] = (struct guest){.fd = try_guest(&r)};
    while (hear(&guests[16]))
        ;
    assert_true(guests[16].refused);
    say(&guests[3], ATTACH_INPUT, "\n", 1);
    for (size_t i = 0; i < 16; i++)
        hear_end(&guests[i]);
    assert_string_equal(buf_str(&guests[15].out), "over\n");
    for (size_t i = 0; i < 17; i++)
        part(&guests[i]);
    finish(&r);
}

/* Invalid frames cost the sender its connection and affect no other client. */
static void
test_nonsense(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"i\0\0\0\1x", 6},              /* before hello */
        {"h\0\0\0\2[]", 7},             /* not an object */
        {"h\0\0\0\1{", 6},              /* not JSON */
        {"h\xff\xff\xff\xff", 5},       /* longer than any frame */
        {"h\0\0\0\2{}h\0\0\0\2{}", 14}, /* hello twice */
    };
    (void)state;
    struct rig r;
    struct guest g;
    open_interactive(&r, "read x; exit 9", false);
    start(&r);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct guest bad = {.fd = try_guest(&r)};
        assert_int_equal(send(bad.fd, rows[i].bytes, rows[i].n, MSG_NOSIGNAL), rows[i].n);
        while (hear(&bad))
            ;
        part(&bad);
    }
    join(&r, &g, "{\"input\":true}");
    say(&g, '?', "unknown", 7);
    say(&g, ATTACH_WINSIZE, "x", 1);
    say(&g, ATTACH_EOF, NULL, 0);
    hear_end(&g);
    assert_int_equal(code_of(&g), 9);
    part(&g);
    finish(&r);
}

/* Other users get nothing, whatever the socket's mode allows. */
static void
test_another_user_is_refused(void **state)
{
    (void)state;
    struct rig r;
    struct guest g;
    if (geteuid() != 0)
        skip();
    open_interactive(&r, "read x; echo over", false);
    start(&r);
    auto_free char *path = xasprintf("%s/attach.sock", r.dir);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chmod(r.dir, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        ssize_t n;
        int fd;
        if (setresuid(65534, 65534, 65534) < 0 || (fd = try_guest(&r)) < 0)
            _exit(2);
        bool refused = true;
        for (int i = 0; (n = recv(fd, &byte, 1, 0)) > 0; i++)
            refused &= i > 0 || byte == ATTACH_REFUSED;
        _exit(n == 0 && refused ? 0 : 1);
    }
    assert_int_equal(rig_wait_pid(pid), 0);
    join(&r, &g, "{\"input\":true}");
    say(&g, ATTACH_EOF, NULL, 0);
    hear_end(&g);
    part(&g);
    finish(&r);
}

/* No client could be served from a log that cannot be read back. */
static void
test_a_log_that_is_no_file(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    open_interactive(&r, "echo x", false);
    rig_set_text(&r, "log", "/dev/null");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_NOT_STARTED);
    assert_non_null(strstr(rec.ending.text, "regular file: /dev/null"));
    struct guest g;
    join(&r, &g, "{}");
    hear_end(&g);
    part(&g);
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_output_and_exit_code),
        cmocka_unit_test(test_a_hundred_megabytes_past_a_client_that_sleeps),
        cmocka_unit_test(test_coming_back_where_one_was),
        cmocka_unit_test(test_begins_with_the_attempt),
        cmocka_unit_test(test_a_job_that_is_over_at_once),
        cmocka_unit_test(test_a_terminal),
        cmocka_unit_test(test_keys_of_a_terminal),
        cmocka_unit_test(test_a_terminals_last_words),
        cmocka_unit_test(test_a_terminal_is_told_of_the_limit),
        cmocka_unit_test(test_more_clients_than_there_is_room_for),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_another_user_is_refused),
        cmocka_unit_test(test_a_log_that_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
