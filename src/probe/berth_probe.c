/* berth-probe: reads the GPUs for berthd, which never calls a GPU library itself. It may hang
 * or crash with the driver; berthd then replaces it. It stores nothing, ends when its standard
 * input ends or its parent dies, and speaks section 3 of docs/protocol.md:
 *
 *   hello line, then for every line "sample N" one sample line; or {"error":...} and exit 1
 *
 * When the set of GPUs or their numbers have changed (MIG instances were created or removed),
 * it sends a new hello instead of a sample.
 *
 * With --cap it does only one thing: for a supervisor, limits the cgroup of its attempt to a
 * part of some GPUs' memory, or lifts that limit.
 *
 * Kernel log messages about GPUs are passed on as they arrive, and again before the driver is
 * asked for a sample: if that hangs, the daemon already knows which GPU is the cause. Each
 * line is written with one write, so that a reader never waits for the rest of one. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/long_options.h"
#include "base/parse.h"
#include "gpu/probe_message.h"
#include "gpu/procfs.h"
#include "probe/card_groups.h"
#include "probe/choose_backend.h"
#include "probe/kernlog.h"
#include "sys/cgroup.h"

/* Longer than any valid request. */
#define REQUEST_MAX 4096

/* Minimum interval between wake-ups by a kernel that logs without end. */
#define LOG_REST_MS 250

struct options {
    const char *backend; /* NULL: not given */
    bool once;
    const char *cap; /* MIB or "none"; NULL: not given */
    const char *group, *cards;
    int64_t log_after; /* newest kernel log record known to the daemon; -1: none */
    struct backend_config config;
};

struct probe {
    const struct options *options;
    const struct backend *backend;
    void *state;
    struct backend_machine machine;
    struct backend_sample sample;
    struct card_groups groups; /* requested since the last sample */
    struct kernlog *log;
    struct buf out;
};

static const char usage[] =
    "usage: berth-probe [--backend auto|nvml|nvidia-smi|drm|sim] [--sim SPEC --sim-dir DIR]\n"
    "                   [--log-after N] [--once]\n"
    "       berth-probe --backend nvml|sim --cap MIB|none --group FOLDER --gpus UUID,...\n"
    "\n"
    "Read the GPUs for berthd: answer each line 'sample N' on standard input with a line\n"
    "of JSON. --once: print the GPUs and one sample, and exit. --log-after: report GPU\n"
    "errors in the kernel's log after record N. --cap: let processes of a cgroup have at most\n"
    "so many MiB of each of these GPUs, or lift that, and exit.\n";

static int
take_log_after(void *out, const char *value, struct err *e)
{
    struct options *o = out;

    return parse_int(value, -1, INT64_MAX / 16, &o->log_after, e) < 0
               ? err_prefix(e, "--log-after")
               : 0;
}

static const struct long_option table[] = {
    {"backend", LONG_OPTION_TEXT, offsetof(struct options, backend), NULL},
    {"sim", LONG_OPTION_TEXT, offsetof(struct options, config.sim_spec), NULL},
    {"sim-dir", LONG_OPTION_TEXT, offsetof(struct options, config.sim_dir), NULL},
    {"log-after", LONG_OPTION_TAKE, 0, take_log_after},
    {"cap", LONG_OPTION_TEXT, offsetof(struct options, cap), NULL},
    {"group", LONG_OPTION_TEXT, offsetof(struct options, group), NULL},
    {"gpus", LONG_OPTION_TEXT, offsetof(struct options, cards), NULL},
    {"once", LONG_OPTION_FLAG, offsetof(struct options, once), NULL},
    {NULL, 0, 0, NULL},
};

/* Returns what long_options_read does; also reads the environment. */
static int
parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    int rc = long_options_read(argc, argv, table, usage, "berth-probe", o, e);

    if (rc != 0)
        return rc;
    if (!o->backend)
        o->backend = o->config.sim_spec ? "sim" : "auto";
    o->config.nvml_path = getenv("BERTH_NVML");
    o->config.smi_path = getenv("BERTH_NVIDIA_SMI");
    o->config.sys_root = getenv("BERTH_SYS");
    o->config.proc_root = getenv("BERTH_PROC");
    if (o->cap && (!o->group || !o->cards))
        return err_set(e, ERR_USAGE, "--cap needs --group and --gpus");
    return 0;
}

/* 0, or -1 if the reader has gone. */
static int
flush(struct probe *p)
{
    int result = file_write_all(STDOUT_FILENO, p->out.data, p->out.len);

    buf_clear(&p->out);
    return result;
}

static int
say_error(struct probe *p, const struct err *e)
{
    message_error(&p->out, e->text);
    flush(p);
    return 1;
}

static int
find_cards(struct probe *p, struct err *e)
{
    const struct options *o = p->options;

    p->backend = choose_backend(o->backend, &o->config, &p->state, &p->machine, e);
    if (!p->backend)
        return -1;
    card_groups_find_dmem(&p->machine, &o->config);
    return 0;
}

static void
say_hello(struct probe *p)
{
    message_hello(&p->out, p->backend->name, &p->machine, kernlog_position(p->log));
}

/* Reopens the backend after the set of GPUs changed; requested groups referred to the old
 * positions. */
static int
begin_again(struct probe *p, struct err *e)
{
    p->backend->close(TAKE(p->state));
    card_groups_clear(&p->groups);
    if (find_cards(p, e) < 0)
        return -1;
    say_hello(p);
    return 0;
}

static int
answer(struct probe *p, int64_t number, struct err *e)
{
    kernlog_report(p->log, &p->out);
    if (p->out.len > 0 && flush(p) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write");
    if (p->backend->has_changed && p->backend->has_changed(p->state))
        return begin_again(p, e);
    if (p->backend->sample(p->state, &p->sample, e) < 0)
        return -1;
    card_groups_read_use(&p->groups, p->backend, p->state, &p->machine);
    message_sample(&p->out, number, &p->machine, &p->sample, p->groups.list, p->groups.n,
                   procfs_uid);
    card_groups_clear(&p->groups);
    return 0;
}

/* Handles one line. Unknown lines are ignored: a newer daemon may send more kinds. */
static int
serve_line(struct probe *p, char *line, struct err *e)
{
    int64_t number;

    line[strcspn(line, "\r")] = '\0';
    if (strncmp(line, "group ", 6) == 0)
        card_groups_add(&p->groups, &p->machine, line + 6);
    if (strncmp(line, "sample ", 7) != 0 ||
        parse_int(line + 7, 0, INT64_MAX, &number, NULL) < 0)
        return 0;
    return answer(p, number, e);
}

/* Handles all complete lines; keeps the rest. */
static int
serve_lines(struct probe *p, struct buf *in, struct err *e)
{
    char *end;

    while (in->len > 0 && (end = memchr(in->data, '\n', in->len))) {
        *end = '\0';
        if (serve_line(p, in->data, e) < 0)
            return -1;
        buf_drop(in, (size_t)(end - in->data) + 1);
        if (flush(p) < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot write the sample");
    }
    if (in->len > REQUEST_MAX)
        return err_set(e, ERR_USAGE, "a request longer than %d bytes", REQUEST_MAX);
    return 0;
}

/* Waits for a request, and meanwhile passes on the kernel's log. False if the reader has
 * gone. */
static bool
await_request(struct probe *p)
{
    bool resting = false;

    for (;;) {
        struct pollfd fds[2] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = resting ? -1 : kernlog_poll_fd(p->log), .events = POLLIN}};
        int n = poll(fds, 2, resting ? LOG_REST_MS : -1);
        resting = n > 0 && fds[1].revents;
        if (resting)
            kernlog_report(p->log, &p->out);
        if (p->out.len > 0 && flush(p) < 0)
            return false;
        if (n > 0 && fds[0].revents)
            return true;
    }
}

/* Serves requests until standard input ends. Returns the exit code. */
static int
serve(struct probe *p)
{
    auto_buf struct buf in = BUF_INIT;
    struct err e;

    while (await_request(p)) {
        char bytes[REQUEST_MAX];
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        buf_add(&in, bytes, (size_t)n);
        if (serve_lines(p, &in, &e) < 0)
            return say_error(p, &e);
    }
    return 1;
}

/* Simulated GPUs have a log of their own; the machine's log does not mention them. */
static void
open_log(struct probe *p, const struct options *o)
{
    const char *real = getenv("BERTH_KMSG");
    auto_free char *sim =
        p->backend == &backend_sim ? xasprintf("%s/kmsg", o->config.sim_dir) : NULL;

    p->log = kernlog_open(sim ? sim : real ? real : "/dev/kmsg", o->log_after);
}

static int
run(struct probe *p, const struct options *o)
{
    struct err e;

    p->options = o;
    if (find_cards(p, &e) < 0)
        return say_error(p, &e);
    open_log(p, o);
    say_hello(p);
    if (flush(p) < 0)
        return 1;
    if (!o->once)
        return serve(p);
    if (answer(p, 0, &e) < 0)
        return say_error(p, &e);
    return flush(p) < 0 ? 1 : 0;
}

/* Undoes what the parent ignores or blocks: nvidia-smi has to be waited for (an ignored
 * SIGCHLD would discard its exit status), and a broken pipe must be an error, not a death. */
static void
reset_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

/* On failure prints the reason to standard output. */
static int
run_cap(const struct options *o)
{
    const struct backend *b = backend_named(o->backend);
    int64_t mib = -1;
    struct err e = {0};

    if (!b)
        err_set(&e, ERR_USAGE, "unknown backend '%.40s'", o->backend);
    else if ((strcmp(o->cap, "none") == 0 ||
              parse_int(o->cap, 1, VRAM_MAX_MIB, &mib, &e) == 0) &&
             card_groups_cap(b, &o->config, o->cards, o->group, mib, &e) == 0)
        return 0;
    printf("%s\n", e.text);
    return 1;
}

int
main(int argc, char **argv)
{
    struct options o = {.log_after = -1};
    struct probe *p;
    struct err e;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    int rc = parse_options(argc, argv, &o, &e);
    if (rc < 0)
        fprintf(stderr, "berth-probe: %s\n%s", e.text, usage);
    if (rc != 0)
        return rc < 0 ? 2 : 0;
    auto_free char *cgroups =
        getenv("BERTH_CGROUP") ? xstrdup(getenv("BERTH_CGROUP")) : cgroup_find_mount(NULL);
    o.config.cgroup_root = cgroups;
    if (o.cap)
        return run_cap(&o);
    p = xcalloc(1, sizeof *p);
    int status = run(p, &o);
    if (p->backend)
        p->backend->close(p->state);
    kernlog_close(p->log);
    backend_sample_free(&p->sample);
    card_groups_free(&p->groups);
    buf_free(&p->out);
    free(p);
    return status;
}
