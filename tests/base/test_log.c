/* The log: one fact per line, levels, and resistance of lines to text from outside; its
 * formats, the journal, and rotation. */
#include <fcntl.h>
#include <setjmp.h>
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
#include "base/file.h"
#include "base/log.h"
#include "base/log_line.h"

static void
check_line(const char *line, const char *rest)
{
    /* 2026-03-01T14:02:10.123Z */
    assert_true(strlen(line) > 25);
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[19], '.');
    assert_int_equal(line[23], 'Z');
    assert_memory_equal(line + 24, rest, strlen(rest));
}

static void
writes_lines_of_its_level(void **state)
{
    char path[] = "/tmp/berth-test-log-XXXXXX";
    auto_buf struct buf b = BUF_INIT;
    struct err e;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(log_open(path, &e), 0);
    log_set_program("berthd"); /* only for stderr */
    log_debug("job=%d event=unseen", 1);
    log_info("job=%d command=%s", 12, "echo 'a\nb'\x1b[2J");
    log_set_level(LOG_LEVEL_ERROR);
    log_warn("job=3 event=unseen");
    log_error("job=%d event=lost", 4);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("job=5");
    assert_int_equal(file_read(path, 10000, &b, &e), 0);
    char *second = strchr(b.data, '\n') + 1;
    check_line(b.data, " info job=12 command=echo 'a\\nb'\\x1B[2J\n");
    check_line(second, " error job=4 event=lost\n");
    char *third = strchr(second, '\n') + 1;
    check_line(third, " debug job=5\n");
    assert_string_equal(strchr(third, '\n'), "\n");
    unlink(path);
}

static void
says_why_it_cannot_open(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(log_open("/nowhere/at/all.log", &e), -1);
    assert_non_null(strstr(e.text, "/nowhere/at/all.log"));
}

static const struct {
    const char *words, *json;
} forms[] = {
    {"job=12 event=ended state=COMPLETED",
     "\"job\":12,\"event\":\"ended\",\"state\":\"COMPLETED\""},
    {"event=leaving why=\"on request\" jobs=0",
     "\"event\":\"leaving\",\"why\":\"on request\",\"jobs\":0"},
    {"event=commit-failed disk x=1 is full",
     "\"event\":\"commit-failed\",\"text\":\"disk x=1 is full\""},
    {"only words", "\"text\":\"only words\""},
    {"", NULL},
    {"a=007 b=-5 c= d=+5", "\"a\":\"007\",\"b\":-5,\"c\":\"\",\"d\":\"+5\""},
    {"a=99999999999999999999 b=0", "\"a\":\"99999999999999999999\",\"b\":0"},
    {"job=3 job=4 is said twice", "\"job\":3,\"text\":\"job=4 is said twice\""},
    {"path=\"open x", "\"path\":\"\\\"open\",\"text\":\"x\""},
    {"a=\"x\"y b=1", "\"a\":\"\\\"x\\\"y\",\"b\":1"},
    {"A=1 no key", "\"text\":\"A=1 no key\""},
    {"a=1\nb=\x1b[2J\xff", "\"a\":\"1\\nb=\\u001b[2J\xef\xbf\xbd\""},
};

static void
says_the_same_as_json(void **state)
{
    const struct log_stamp stamp = {
        .at_us = 1772373730123456, .level = "info", .program = "berthd", .priority = 6};

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        auto_buf struct buf line = BUF_INIT;
        auto_buf struct buf want = BUF_INIT;
        log_line_json(&stamp, forms[i].words, strlen(forms[i].words), &line);
        buf_addf(&want, "{\"time\":\"2026-03-01T14:02:10.123Z\",\"level\":\"info\"%s%s}\n",
                 forms[i].json ? "," : "", forms[i].json ? forms[i].json : "");
        assert_string_equal(buf_str(&line), buf_str(&want));
    }
}

static void
gives_the_journal_fields(void **state)
{
    static const char words[] = "job=12 event=lost it is\ngone";
    const struct log_stamp stamp = {.level = "error", .program = "berthd", .priority = 3};
    static const char want[] = "MESSAGE\n\x1c\0\0\0\0\0\0\0job=12 event=lost it is\ngone\n"
                               "PRIORITY=3\nSYSLOG_IDENTIFIER=berthd\nBERTH_JOB=12\n"
                               "BERTH_EVENT=lost\n";
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    log_line_journal(&stamp, words, sizeof words - 1, &b);
    assert_int_equal(b.len, sizeof want - 1);
    assert_memory_equal(b.data, want, sizeof want - 1);
}

/* Under systemd JOURNAL_STREAM names what stderr is. A child, because there is no way back. */
static void
goes_to_the_journal_where_stderr_does(void **state)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char got[200] = "", stream[64];
    struct stat st;
    int server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(addr.sun_path, sizeof addr.sun_path, "/tmp/berth-test-journal-%d", getpid());
    assert_int_equal(bind(server, (struct sockaddr *)&addr, sizeof addr), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || dup2(pair[0], STDERR_FILENO) < 0 ||
            fstat(STDERR_FILENO, &st) < 0)
            _exit(9);
        setenv("JOURNAL_STREAM", "1:1", 1);
        if (log_use_journal(addr.sun_path)) /* the variable names another descriptor */
            _exit(8);
        snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
        if (!log_use_journal(addr.sun_path))
            _exit(7);
        log_set_program("berthd");
        log_set_level(LOG_LEVEL_INFO);
        log_warn("job=%d event=held", 7);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(recv(server, got, sizeof got - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(got, "MESSAGE=job=7 event=held\nPRIORITY=4\nSYSLOG_IDENTIFIER=berthd\n"
                             "BERTH_JOB=7\nBERTH_EVENT=held\n");
    close(server);
    unlink(addr.sun_path);
}

static int
lines_of(const char *folder, const char *name, struct buf *b)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    struct err e;
    int n = 0;

    buf_clear(b);
    if (access(path, F_OK) < 0)
        return -1;
    assert_int_equal(file_read(path, 1 << 20, b, &e), 0);
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

static void
puts_a_full_file_aside(void **state)
{
    char folder[] = "/tmp/berth-test-log-XXXXXX";
    static const char *const names[] = {"log", "log.1", "log.2"};
    auto_buf struct buf b = BUF_INIT;
    struct err e;
    int total = 0;

    (void)state;
    assert_non_null(mkdtemp(folder));
    auto_free char *path = xasprintf("%s/log", folder);
    assert_int_equal(log_open(path, &e), 0);
    log_set_level(LOG_LEVEL_INFO);
    log_set_rotation(1000, 2);
    for (int i = 0; i < 100; i++) /* each is 36 to 38 bytes: 26 or 27 to a file */
        log_info("event=%d", 1000 + i);
    for (int i = 0; i < 3; i++) {
        int n = lines_of(folder, names[i], &b);
        assert_true(n > 0 && b.len <= 1000);
        total += n;
    }
    assert_true(total < 100); /* older content is gone */
    assert_int_equal(lines_of(folder, "log.3", &b), -1);
    lines_of(folder, "log", &b);
    assert_non_null(strstr(b.data, "event=1099"));
    /* Another program moves the file away: the log opens the same name anew. */
    auto_free char *moved = xasprintf("%s/moved", folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(log_reopen(&e), 0);
    log_info("event=after");
    assert_int_equal(lines_of(folder, "log", &b), 1);
    /* If the file cannot be renamed, it keeps growing. */
    log_set_rotation(10, 2);
    auto_free char *blocker = xasprintf("%s/log.1", folder);
    auto_free char *inside = xasprintf("%s/log.1/x", folder);
    auto_free char *second = xasprintf("%s/log.2", folder);
    unlink(blocker);
    unlink(second);
    assert_int_equal(mkdir(blocker, 0700), 0);
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(mkdir(second, 0700), 0);
    auto_free char *full = xasprintf("%s/log.2/x", folder);
    assert_int_equal(mkdir(full, 0700), 0);
    log_info("event=more");
    assert_int_equal(lines_of(folder, "log", &b), 2);
    log_set_rotation(0, 0);
    rmdir(inside), rmdir(blocker), rmdir(full), rmdir(second);
    unlink(moved), unlink(path), rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_the_same_as_json),
        cmocka_unit_test(gives_the_journal_fields),
        cmocka_unit_test(goes_to_the_journal_where_stderr_does),
        cmocka_unit_test(writes_lines_of_its_level),
        cmocka_unit_test(puts_a_full_file_aside),
        cmocka_unit_test(says_why_it_cannot_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
