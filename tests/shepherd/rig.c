/* See rig.h. Used by the supervisor's tests and by measure.c. Errors fail the test here, since
 * there is no caller to return them to. */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/libc.h"
#include "sys/procs.h"
#include "sys/spawn.h"

static const char *
program(void)
{
    const char *p = getenv("BERTH_SHEPHERD");
    if (!p)
        fail_msg("BERTH_SHEPHERD does not name the program to test");
    return p;
}

void
rig_open(struct rig *r, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    char path[128];
    *r = (struct rig){.folder = -1, .ctl = -1, .pid = -1};
    snprintf(r->dir, sizeof r->dir, "/tmp/berth-shep-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(path, sizeof path, "%s/a", r->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    r->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(r->folder >= 0);
    snprintf(r->mark, sizeof r->mark, "test:%s", r->dir + strlen("/tmp/"));
    snprintf(path, sizeof path, "%s/log", r->dir);
    r->spec =
        json_pack("{s:i s:i s:i s:s s:s s:[] s:i s:s s:i s:i s:n s:i s:i s:[ss]}", "version", 1,
                  "job", 12, "attempt", 3, "mark", r->mark, "cwd", "/", "env", "umask", 022,
                  "log", path, "limit_ms", 0, "grace_ms", 10000, "cgroup", "cpus", 0, "mem_mib",
                  0, "oom_patterns", "CUDA out of memory", "torch.OutOfMemoryError");
    assert_non_null(r->spec);
    rig_set_argv(r, argv);
    rig_add_env(r, "PATH=/usr/local/bin:/usr/bin:/bin");
    auto_free char *mark = xasprintf("BERTH_MARK=%s", r->mark);
    rig_add_env(r, mark);
    auto_free char *scratch = xasprintf("T=%s", r->dir);
    rig_add_env(r, scratch);
}

static void
remove_tree(const char *path)
{
    auto_dir DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        auto_free char *sub = xasprintf("%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            remove_tree(sub);
        else
            unlink(sub);
    }
    rmdir(path);
}

void
rig_remove_folder(const struct rig *r)
{
    auto_free char *folder = xasprintf("%s/a", r->dir);
    remove_tree(folder);
}

void
rig_close(struct rig *r)
{
    if (r->ctl >= 0)
        close(r->ctl);
    close(r->folder);
    json_decref(r->spec);
    buf_free(&r->in);
    remove_tree(r->dir);
}

void
rig_set_argv(struct rig *r, const char *const *argv)
{
    json_t *list = json_array();
    for (; *argv; argv++)
        json_array_append_new(list, json_string(*argv));
    json_object_set_new(r->spec, "argv", list);
}

void
rig_set_int(struct rig *r, const char *key, int64_t v)
{
    json_object_set_new(r->spec, key, json_integer(v));
}

void
rig_set_text(struct rig *r, const char *key, const char *v)
{
    json_object_set_new(r->spec, key, json_string(v));
}

void
rig_add_env(struct rig *r, const char *entry)
{
    json_array_append_new(json_object_get(r->spec, "env"), json_string(entry));
}

/* Starts the program with its three descriptors and its own environment. */
static pid_t
start_program(struct rig *r, const char *option, int ctl, int lock)
{
    auto_free char *crash = r->crash_at ? xasprintf("BERTH_CRASH_AT=%s", r->crash_at) : NULL;
    auto_free char *path = xstrdup(program());
    auto_free char *arg = option ? xstrdup(option) : NULL;
    char *const argv[] = {path, arg, NULL};
    char *const env[] = {crash, NULL};
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    s.n_fds = 6;
    const int fds[] = {0, 1, 2, ctl, lock, r->folder};
    memcpy(s.fds, fds, sizeof fds);
    int errnum = 0;
    enum spawn_stage stage;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid < 0)
        fail_msg("cannot start %s: %s", path, strerror(errnum));
    return pid;
}

void
rig_write_spec(const struct rig *r)
{
    auto_free char *text = json_dumps(r->spec, 0);
    auto_close int lock =
        openat(r->folder, "lock", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(lock, text, strlen(text), EXITREC_HEAD_BYTES), strlen(text));
}

int
rig_take_lock(const struct rig *r)
{
    int lock = openat(r->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    return lock;
}

void
rig_start(struct rig *r)
{
    rig_write_spec(r);
    auto_close int lock = rig_take_lock(r);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    r->ctl = pair[0];
    r->pid = start_program(r, NULL, pair[1], lock);
    close(pair[1]);
}

pid_t
rig_start_sweep(struct rig *r)
{
    auto_close int lock = openat(r->folder, "lock", O_RDWR | O_CLOEXEC);
    auto_close int unused = open("/dev/null", O_RDWR | O_CLOEXEC);
    r->crash_at = NULL;
    return start_program(r, "--sweep", unused, lock);
}

/* Done in a child of the test, because it changes what the program inherits. */
void
rig_start_stand_in(struct rig *r, unsigned limit_files, bool confined)
{
    const struct rlimit few = {.rlim_cur = limit_files, .rlim_max = limit_files};
    auto_free char *crash = r->crash_at ? xasprintf("BERTH_CRASH_AT=%s", r->crash_at) : NULL;
    auto_free char *folder = xasprintf("%s/a", r->dir);
    char *const env[] = {crash, NULL};
    rig_write_spec(r);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid > 0)
        return;
    libc_close_from(3);
    if (confined) { /* only root has any to drop */
        (void)prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
        (void)prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
    }
    if (limit_files == 0 || setrlimit(RLIMIT_NOFILE, &few) == 0)
        execle(program(), program(), "--slurm", folder, NULL, env);
    _exit(99);
}

void
rig_await_file(const struct rig *r, const char *name)
{
    char path[128], events[4096];
    snprintf(path, sizeof path, "%s/a", r->dir);
    auto_close int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_CREATE | IN_MOVED_TO) >= 0);
    while (faccessat(r->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        struct pollfd p = {.fd = watch, .events = POLLIN};
        if (poll(&p, 1, RIG_WAIT_MS) != 1)
            fail_msg("no file %s appears", name);
        (void)!read(watch, events, sizeof events);
    }
}

/* Reads more into in; false at the end of the stream. */
static bool
read_more(int fd, struct buf *in)
{
    char part[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, RIG_WAIT_MS) != 1)
        fail_msg("nothing came in %d ms", RIG_WAIT_MS);
    ssize_t n = read(fd, part, sizeof part);
    if (n <= 0)
        return false;
    buf_add(in, part, (size_t)n);
    return true;
}

json_t *
rig_read(int fd, struct buf *in)
{
    const char *end;
    while (in->len == 0 || (end = memchr(in->data, '\n', in->len)) == NULL)
        if (!read_more(fd, in))
            fail_msg("the shepherd closed the connection");
    size_t n = (size_t)(end - in->data);
    json_t *o = json_loadb(in->data, n, 0, NULL);
    if (!json_is_object(o))
        fail_msg("not an object: %.*s", (int)n, in->data);
    buf_drop(in, n + 1);
    return o;
}

json_t *
rig_await(int fd, struct buf *in, const char *event)
{
    for (;;) {
        json_t *o = rig_read(fd, in);
        const char *name = json_string_value(json_object_get(o, "event"));
        if (name && strcmp(name, event) == 0)
            return o;
        json_decref(o);
    }
}

bool
rig_at_end(int fd)
{
    auto_buf struct buf rest = BUF_INIT;
    return !read_more(fd, &rest);
}

static int
try_connect(const struct rig *r)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/ctl.sock", r->folder);
    return connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0 ? TAKE_FD(fd) : -1;
}

/* The socket's name appears shortly before listen(), so a connection may be refused
 * meanwhile. */
int
rig_connect(const struct rig *r)
{
    char path[128], events[4096];
    snprintf(path, sizeof path, "%s/a", r->dir);
    auto_close int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_CREATE) >= 0);
    for (;;) {
        int fd = try_connect(r);
        if (fd >= 0)
            return fd;
        if (errno == ECONNREFUSED) {
            sched_yield();
            continue;
        }
        struct pollfd p = {.fd = watch, .events = POLLIN};
        if (errno != ENOENT || poll(&p, 1, RIG_WAIT_MS) != 1)
            fail_msg("cannot connect to ctl.sock: %s", strerror(errno));
        (void)!read(watch, events, sizeof events);
    }
}

void
rig_say(int fd, const char *line)
{
    assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), strlen(line));
}

void
rig_recorded(struct rig *r)
{
    rig_say(r->ctl, "{\"op\":\"recorded\"}\n");
}

int
rig_wait_pid(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail_msg("waitpid: %s", strerror(errno));
    return status;
}

int
rig_wait(struct rig *r)
{
    return rig_wait_pid(r->pid);
}

static void
decode(const json_t *o, struct exitrec *out)
{
    struct err e;
    auto_free char *text = json_dumps(o, 0);
    if (exitrec_decode(text, strlen(text), out, &e) < 0)
        fail_msg("%s in %s", e.text, text);
}

void
rig_run(struct rig *r, struct exitrec *out)
{
    struct exitrec kept;
    rig_start(r);
    json_t *ended = rig_await(r->ctl, &r->in, "ended");
    decode(ended, out);
    json_decref(ended);
    assert_int_equal(rig_record(r, &kept), 1);
    assert_memory_equal(&kept, out, sizeof kept);
    assert_true(rig_lock_is_held(r));
    rig_recorded(r);
    assert_int_equal(rig_wait(r), 0);
    assert_false(rig_lock_is_held(r));
    assert_int_equal(out->job, 12);
    assert_int_equal(out->attempt, 3);
}

int
rig_record(const struct rig *r, struct exitrec *out)
{
    struct err e;
    int rc = exitrec_read_at(r->folder, 12, 3, out, &e);
    if (rc < 0)
        fail_msg("%s", e.text);
    return rc;
}

int32_t
rig_started(const struct rig *r)
{
    struct err e;
    int32_t pid = 0;
    int64_t boot_us = -1;
    int rc = exitrec_started_at(r->folder, &pid, &boot_us, &e);
    if (rc < 0)
        fail_msg("%s", e.text);
    if (rc == 1)
        assert_true(boot_us > 0);
    return rc == 1 ? pid : 0;
}

bool
rig_lock_is_held(const struct rig *r)
{
    return file_is_locked_at(r->folder, "lock", NULL) == 1;
}

void
rig_read_log(const struct rig *r, struct buf *out)
{
    struct err e;
    const char *path = json_string_value(json_object_get(r->spec, "log"));
    if (file_read(path, 64 * 1024 * 1024, out, &e) < 0)
        fail_msg("%s", e.text);
}

void
rig_make_fifo(const struct rig *r, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", r->dir, name);
    assert_int_equal(mkfifo(path, 0600), 0);
}

long
rig_read_fifo(const struct rig *r, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", r->dir, name);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    auto_buf struct buf text = BUF_INIT;
    while (read_more(fd, &text))
        ;
    return strtol(buf_str(&text), NULL, 10);
}

bool
rig_lives(pid_t pid)
{
    struct proc p;
    return proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X';
}
