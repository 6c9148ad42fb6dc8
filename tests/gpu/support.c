/* See support.h. */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define ANSWER_MS 120000

char *
support_make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = xasprintf("%s/berth-gpu-XXXXXX", tmp ? tmp : "/tmp");

    assert_non_null(mkdtemp(dir));
    return dir;
}

static void
remove_tree(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct dirent *entry;

    if (fd < 0) {
        unlinkat(parent, name, 0);
        return;
    }
    DIR *d = fdopendir(fd);
    while ((entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_tree(fd, entry->d_name);
    }
    closedir(d);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void
support_remove_dir(char *dir)
{
    remove_tree(AT_FDCWD, dir);
    free(dir);
}

void
support_write(const char *dir, const char *name, const char *text)
{
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e;

    assert_true(fd >= 0);
    if (file_write_atomic_at(fd, name, text, strlen(text), 0644, false, &e) < 0)
        fail_msg("%s", e.text);
}

const char *
support_path(const char *variable)
{
    const char *path = getenv(variable);

    if (!path)
        err_abort("%s is not set; run the tests by meson test", variable);
    return path;
}

struct child
child_start(const char *const *argv)
{
    posix_spawn_file_actions_t files;
    int in[2], out[2], err[2];
    struct child c;

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, err[1], 2);
    assert_int_equal(
        posix_spawn(&c.pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    c.in = in[1];
    c.out = out[0];
    c.err = err[0];
    return c;
}

void
child_say(struct child *c, const char *line)
{
    assert_int_equal(file_write_all(c->in, line, strlen(line)), 0);
}

json_t *
child_json(struct child *c)
{
    auto_buf struct buf line = BUF_INIT;
    json_error_t why;
    char byte = 0;

    while (byte != '\n') {
        struct pollfd p = {.fd = c->out, .events = POLLIN};
        if (poll(&p, 1, ANSWER_MS) != 1)
            fail_msg("no line of output came; so far: %s", buf_str(&line));
        if (read(c->out, &byte, 1) != 1)
            fail_msg("the output ended; so far: %s", buf_str(&line));
        buf_addc(&line, byte);
    }
    json_t *v = json_loads(line.data, 0, &why);
    if (!v)
        fail_msg("%s in: %s", why.text, line.data);
    return v;
}

char *
child_read_all(int fd)
{
    struct buf all = BUF_INIT;
    char bytes[4096];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        buf_add(&all, bytes, (size_t)n);
    buf_addc(&all, '\0');
    return buf_take(&all);
}

int
child_is_silent(struct child *c, int ms)
{
    struct pollfd p = {.fd = c->out, .events = POLLIN};

    return poll(&p, 1, ms) == 0;
}

int
child_end(struct child *c)
{
    int how;

    close(c->in);
    assert_int_equal(waitpid(c->pid, &how, 0), c->pid);
    close(c->out);
    close(c->err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* Follows the path; the test fails if it leads nowhere. */
static json_t *
at(json_t *v, const char *path)
{
    auto_free char *copy = xstrdup(path);
    char *next = copy, *step;

    while ((step = strsep(&next, "."))) {
        v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(step, NULL, 10))
                             : json_object_get(v, step);
        if (!v)
            fail_msg("there is no %s (at %s)", path, step);
    }
    return v;
}

void
check_str(json_t *v, const char *path, const char *want)
{
    const char *have = json_string_value(at(v, path));

    if (!have)
        fail_msg("%s is no string", path);
    assert_string_equal(have, want);
}

void
check_int(json_t *v, const char *path, long long want)
{
    json_t *have = at(v, path);

    if (!json_is_integer(have))
        fail_msg("%s is no integer", path);
    assert_int_equal(json_integer_value(have), want);
}

void
check_null(json_t *v, const char *path)
{
    if (!json_is_null(at(v, path)))
        fail_msg("%s is not null", path);
}

void
check_size(json_t *v, const char *path, size_t want)
{
    json_t *have = at(v, path);

    if (!json_is_array(have))
        fail_msg("%s is no array", path);
    assert_int_equal(json_array_size(have), want);
}
