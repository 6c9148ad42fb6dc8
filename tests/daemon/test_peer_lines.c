/* Lines over a socket: complete however they arrive, end of file, and closing from a
 * callback. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/common/peer_lines.h"

struct heard {
    uv_loop_t loop;
    struct peer_lines *lines;
    int theirs;
    struct buf text; /* each line followed by a comma; "end" at the end */
    int close_after; /* number of lines; 0: never */
};

static void
on_line(void *arg, const char *line, size_t n)
{
    struct heard *h = arg;
    if (!line) {
        buf_adds(&h->text, "end");
        peer_lines_close(h->lines);
        return;
    }
    buf_add(&h->text, line, n);
    buf_addc(&h->text, ',');
    if (h->close_after > 0 && --h->close_after == 0)
        peer_lines_close(h->lines);
}

static void
begin(struct heard *h, int close_after)
{
    int pair[2];
    struct err e;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(uv_loop_init(&h->loop), 0);
    h->text = (struct buf)BUF_INIT;
    h->close_after = close_after;
    h->theirs = pair[1];
    h->lines = peer_lines_open(&h->loop, pair[0], on_line, h, &e);
    assert_non_null(h->lines);
    assert_int_equal(peer_lines_fd(h->lines), pair[0]);
}

static void
send_text(const struct heard *h, const char *text)
{
    assert_int_equal(write(h->theirs, text, strlen(text)), strlen(text));
}

static void
finish(struct heard *h)
{
    assert_int_equal(uv_run(&h->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    buf_free(&h->text);
}

static void
hears_whole_lines_and_the_end(void **state)
{
    struct heard h;
    (void)state;
    begin(&h, 0);
    send_text(&h, "one\ntw");
    uv_run(&h.loop, UV_RUN_ONCE);
    assert_string_equal(buf_str(&h.text), "one,");
    send_text(&h, "o\nthree");
    close(h.theirs);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    assert_string_equal(buf_str(&h.text), "one,two,end");
    finish(&h);
}

static void
hears_nothing_once_closed(void **state)
{
    struct heard h;
    (void)state;
    begin(&h, 2);
    send_text(&h, "one\ntwo\nthree\n");
    uv_run(&h.loop, UV_RUN_DEFAULT);
    assert_string_equal(buf_str(&h.text), "one,two,");
    close(h.theirs);
    finish(&h);
    peer_lines_close(NULL);
}

static void
ends_where_a_line_is_too_long(void **state)
{
    static char much[1 << 16];
    struct heard h;
    (void)state;
    begin(&h, 0);
    memset(much, 'x', sizeof much);
    while (h.text.len == 0) {
        (void)send(h.theirs, much, sizeof much, MSG_DONTWAIT | MSG_NOSIGNAL);
        uv_run(&h.loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(buf_str(&h.text), "end");
    close(h.theirs);
    finish(&h);
}

static void
says_and_tells_that_nobody_hears(void **state)
{
    struct heard h;
    char got[8] = "";
    (void)state;
    begin(&h, 0);
    assert_int_equal(peer_lines_say(h.lines, "go\n", 3), 3);
    assert_int_equal(read(h.theirs, got, sizeof got - 1), 3);
    assert_string_equal(got, "go\n");
    close(h.theirs);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(peer_lines_say(h.lines, "go\n", 3), UV_EPIPE);
    finish(&h);
}

static void
takes_the_descriptor_where_it_fails(void **state)
{
    struct err e;
    uv_loop_t loop;
    int unreadable = open("/", O_PATH | O_CLOEXEC);
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_null(peer_lines_open(&loop, unreadable, on_line, NULL, &e));
    assert_int_equal(e.code, ERR_FAILED);
    assert_int_equal(fcntl(unreadable, F_GETFD), -1);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hears_whole_lines_and_the_end),
        cmocka_unit_test(hears_nothing_once_closed),
        cmocka_unit_test(ends_where_a_line_is_too_long),
        cmocka_unit_test(says_and_tells_that_nobody_hears),
        cmocka_unit_test(takes_the_descriptor_where_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
