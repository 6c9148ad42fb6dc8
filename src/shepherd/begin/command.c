/* From the spec to a running command, in this order: umask, working folder, log, standard
 * descriptors, process, mark, exec. attempt.c calls it once. Every failure that a person can
 * fix is detected before the mark is written, or reported with the program's name. */
#include "shepherd/begin/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cpu_list.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/child_setup.h"
#include "shepherd/begin/container.h"
#include "shepherd/begin/identity.h"
#include "shepherd/begin/logfile.h"
#include "shepherd/begin/login_env.h"
#include "shepherd/begin/plain_command.h"
#include "shepherd/begin/screen.h"
#include "shepherd/begin/setup.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/attach_server.h"
#include "shepherd/talk/console.h"
#include "sys/rlimits.h"
#include "sys/spawn.h"

#define ARG_MAX_BYTES 131072 /* the kernel's MAX_ARG_STRLEN: one argument with its NUL */
#define PATIENCE_MS   30000  /* for a child that another user may stop */
#define SCRIPT_FD     3      /* from which a shell reads text too long for an argument */

/* Records why there is no command, and who is charged. */
__attribute__((format(printf, 5, 6))) static void
fail(struct command *c, const struct spec *spec, enum step step, int errnum, const char *fmt,
     ...)
{
    char what[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    c->errnum = errnum;
    c->blame = blame_of(spec->log_own, step, errnum);
    /* Truncate the description (it may hold a long path) rather than the reason. */
    const char *why = strerror(errnum);
    char cut[sizeof c->text];
    text_copy_cut(cut, sizeof cut - strlen(why) - 2, what);
    auto_free char *text = xasprintf("%s: %s", cut, why);
    text_copy_cut(c->text, sizeof c->text, text);
}

/* As fail, for an error with a complete message. */
static void
fail_as(struct command *c, const struct spec *spec, enum step step, const struct err *e)
{
    text_copy_cut(c->text, sizeof c->text, e->text);
    c->errnum = e->errnum;
    c->blame = e->errnum ? blame_of(spec->log_own, step, e->errnum) : BLAME_COMMAND;
}

static int
open_output(const struct spec *spec, const struct logfile *f, enum step step, int *fd,
            struct command *c)
{
    *fd = logfile_open(f);
    if (*fd < 0)
        fail(c, spec, step, errno, "cannot open the %s %s",
             step == STEP_ERROR ? "file for errors" : "log", f->path);
    return *fd < 0 ? -1 : 0;
}

/* Opens the log and the error file as the job's user. */
static int
open_log(const struct spec *spec, struct command *c)
{
    const struct logfile log = {
        .path = spec->log,
        .read = spec->attach != NULL,
        .truncate = spec->truncate,
        .own_place = spec->log_mkdir,
    };
    const struct logfile error = {.path = spec->error, .truncate = spec->truncate};
    if (open_output(spec, &log, STEP_LOG, &c->log_fd, c) < 0) {
        if (spec->log_own && logfile_place_is_shut(spec->log, spec->log_mkdir))
            c->blame = BLAME_MACHINE;
        return -1;
    }
    return spec->error ? open_output(spec, &error, STEP_ERROR, &c->error_fd, c) : 0;
}

static bool
is_shell(const char *program)
{
    static const char *const SHELLS[] = {"sh", "dash", "bash", "ksh", "zsh"};
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++)
        if (strcmp(SHELLS[i], name) == 0)
            return true;
    return false;
}

/* True for `sh -c TEXT` if TEXT exceeds the size of one argument: it then goes into a memory
 * file that the shell reads as descriptor 3, which the text closes first. $0 and the arguments
 * are unchanged. */
static bool
needs_script(char *const *argv)
{
    return argv[1] && argv[2] && strcmp(argv[1], "-c") == 0 && is_shell(argv[0]) &&
           strlen(argv[2]) >= ARG_MAX_BYTES;
}

static char *
script_text(char *const *argv)
{
    return needs_script(argv) ? xasprintf("exec %d<&-;%s", SCRIPT_FD, argv[2]) : NULL;
}

/* argv with a command that sources the script instead of its text; the caller frees the
 * list. */
static char **
argv_of_script(char *const *argv)
{
    static char SOURCE_IT[] = ". /dev/fd/3";
    size_t n = text_list_len(argv);
    char **out = xcalloc(n + 1, sizeof *out);
    memcpy(out, argv, n * sizeof *out);
    out[2] = SOURCE_IT;
    return out;
}

const char *
command_env(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* The first variable too long for the kernel; NULL if there is none. */
static const char *
find_too_long(char *const *env)
{
    for (; *env; env++)
        if (strlen(*env) >= ARG_MAX_BYTES)
            return *env;
    return NULL;
}

static void
explain_exec(const struct spec *spec, int errnum, bool as_other, struct command *c)
{
    const char *program = spec->container.image ? spec->container.program : spec->argv[0];
    const char *too_long = errnum == E2BIG ? find_too_long(spec->env) : NULL;
    if (too_long)
        fail(c, spec, STEP_EXEC, errnum,
             "cannot execute '%.60s' (the variable %.*s has %zu bytes)", program,
             (int)strcspn(too_long, "="), too_long, strlen(too_long));
    else if (errnum == ENOENT && !as_other && strchr(program, '/') &&
             access(program, F_OK) == 0) /* root may not see a user's files */
        fail(c, spec, STEP_EXEC, errnum, "cannot execute '%.80s' (its interpreter is missing)",
             program);
    else
        fail(c, spec, STEP_EXEC, errnum, "cannot execute '%s'", program);
}

/* A set-up or a login may redefine the first word of a command line. */
static bool
is_plain(const struct spec *spec, char *const *set_up)
{
    return spec->shell && !set_up && !spec->login && !spec->container.image;
}

/* Replaces argv by the container's command line, if the job has a container. */
static int
enter_container(const struct spec *spec, char *const *argv, const struct last_steps *last,
                char *const *env, const char *script, struct container_run *run,
                struct command *c)
{
    struct err e;
    if (!spec->container.image)
        return 0;
    int rc = container_prepare(spec, argv, env, last->identity, last->rlimits, script, run, &e);
    c->mark_fd = run->mark_fd;
    if (rc < 0)
        fail_as(c, spec, STEP_OURS, &e);
    return rc;
}

static void
spawn_command(const struct spec *spec, const struct last_steps *last, char *const *env,
              int cgroup_fd, const struct console_ends *ends, struct command *c)
{
    auto_free char *script = script_text(spec->argv);
    bool by_init = spec->container.image && !spec->container.apptainer;
    auto_close int script_fd =
        script && !by_init ? file_in_memory("command", script, strlen(script)) : -1;
    if (script && !by_init && script_fd < 0) {
        fail(c, spec, STEP_OURS, errno, "cannot hand over a long command");
        return;
    }
    auto_free char **script_argv = script ? argv_of_script(spec->argv) : NULL;
    char number[12];
    char *const *plain = script_argv ? script_argv : spec->argv;
    auto_free char **set_up =
        c->setup_fd >= 0 ? setup_argv(spec, plain, c->setup_fd, number) : NULL;
    auto_free char **words =
        is_plain(spec, set_up) ? plain_command_words(spec->argv[2], env) : NULL;
    auto_free char **in_folder = plain_command_env(env, spec->cwd, !last->identity);
    char *const *argv = set_up ? set_up : plain;
    const char *shell =
        last->identity ? last->identity->shell : command_env(spec->env, "SHELL");
    bool other_login = spec->login && !(set_up && login_is_read_by_bash(shell));
    auto_free char **in_login = other_login ? login_argv(shell, argv) : NULL;
    auto_container struct container_run inside = CONTAINER_RUN_INIT;
    if (enter_container(spec, argv, last, env, script, &inside, c) < 0)
        return;
    struct last_steps steps = *last;
    struct spawn s = {
        .argv = inside.argv ? inside.argv
                : in_login  ? in_login
                : words     ? words
                            : argv,
        .instead = words ? argv : NULL,
        .envp = inside.env  ? inside.env
                : in_folder ? in_folder
                            : env,
        .path = command_env(spec->env, "PATH"),
        .fds = {ends->fds[0], ends->fds[1], ends->fds[2], by_init ? inside.mark_fd : script_fd},
        .n_fds = by_init || script_fd >= 0 ? SCRIPT_FD + 1 : SCRIPT_FD,
        .cgroup_fd = cgroup_fd,
        .must_join = groups_must_hold(&spec->groups),
        .new_session = true,
        .has_default_signals = true, /* berth_shepherd.c has reset them */
        .death_signal = last->death_signal,
        .patience_ms = last->identity ? PATIENCE_MS : 0,
        .before_exec = last_steps_take,
        .ctx = &steps,
    };
    enum spawn_stage stage;
    int errnum = 0;
    (void)clock_boot_id(); /* read now, so that the child need not */
    crash_point("shepherd-before-fork");
    c->boot_us = clock_boot_us();
    c->pid = spawn_process(&s, &errnum, &stage);
    if (c->pid > 0)
        return;
    if (stage == SPAWN_EXEC && set_up)
        fail(c, spec, STEP_EXEC, errnum, "cannot execute '%s', which its set-up needs",
             set_up[0]);
    else if (stage == SPAWN_EXEC)
        explain_exec(spec, errnum, last->identity != NULL, c);
    else if (stage == SPAWN_JOIN)
        fail(c, spec, STEP_OURS, errnum, "cannot enter its cgroup");
    else
        fail(c, spec, stage == SPAWN_FORK ? STEP_FORK : STEP_CHILD, errnum,
             stage == SPAWN_FORK ? "cannot start a process"
                                 : "cannot prepare the process for it");
}

/* Enters the folder and opens the log for a job of our own user. */
static int
enter_and_open(const struct spec *spec, struct command *out)
{
    if (chdir(spec->cwd) < 0) {
        fail(out, spec, STEP_FOLDER, errno, "cannot enter the working folder %s", spec->cwd);
        return -1;
    }
    return open_log(spec, out);
}

static void
note_log_length(struct command *c)
{
    struct stat st;
    if (file_look(c->log_fd, &st) == 0)
        c->log_from = st.st_size;
    if (c->error_fd >= 0 && file_look(c->error_fd, &st) == 0)
        c->error_from = st.st_size;
}

/* Opens the command's standard descriptors. */
static int
open_ends(const struct spec *spec, struct console *console, struct console_ends *ends,
          struct command *out)
{
    struct err e;
    if (console) {
        if (console_open(console, spec, out->log_fd, ends, &e) == 0)
            return 0;
        fail_as(out, spec, spec->pty ? STEP_TERMINAL : STEP_OURS, &e);
        return -1;
    }
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *ends = (struct console_ends){
        {fd, out->log_fd, out->error_fd >= 0 ? out->error_fd : out->log_fd}, fd};
    if (fd < 0)
        fail(out, spec, STEP_OURS, errno, "cannot open /dev/null");
    return fd < 0 ? -1 : 0;
}

static int
prepare_setup(const struct spec *spec, struct command *c)
{
    struct err e;
    if (!setup_is_wanted(spec) || (c->setup_fd = setup_open(spec, &e)) >= 0)
        return 0;
    fail_as(c, spec, STEP_OURS, &e);
    return -1;
}

/* Starts the screen session first, if there is to be one, so that the command gets its name;
 * ends it again if the command cannot be started. */
static void
start_in_screen(const struct spec *spec, const struct last_steps *last, char *const *env,
                int cgroup_fd, const struct attach *attach, const struct console_ends *ends,
                struct command *c)
{
    const struct screen_wish wish = {spec, env, last, cgroup_fd, attach_listener(attach)};
    pid_t pid = screen_start(&wish, c);
    if (pid < 0)
        return;
    char **in_screen = screen_env(env, pid, spec->screen);
    if (prepare_setup(spec, c) == 0)
        spawn_command(spec, last, in_screen, cgroup_fd, ends, c);
    screen_env_free(in_screen);
    if (c->pid > 0)
        c->screen_pid = pid;
    else
        screen_stop(pid);
}

/* The spec's CPUs that we may use: a larger mask would give the job more than it inherits. */
static bool
cpus_near(const struct spec *spec, cpu_set_t *out)
{
    cpu_set_t ours;
    if (!spec->cpu_list || !cpu_list_read(spec->cpu_list, out) ||
        sched_getaffinity(0, sizeof ours, &ours) < 0)
        return false;
    CPU_AND(out, out, &ours);
    return CPU_COUNT(out) > 0;
}

void
command_start(const struct spec *spec, int lock_fd, const struct groups *groups,
              struct attach *attach, struct command *out)
{
    auto_identity struct identity id = IDENTITY_INIT;
    struct rlimits rlimits;
    struct console *console = attach_console(attach);
    struct console_ends ends;
    struct err e;
    *out = COMMAND_INIT;
    umask(spec->umask);
    if ((spec->uid >= 0 ? identity_open(spec, &id, out) : enter_and_open(spec, out)) < 0)
        return;
    note_log_length(out);
    bool bounded = spec->rlimits != NULL;
    if ((spec->rlimits && rlimits_parse(spec->rlimits, &rlimits, &e) < 0) ||
        identity_bound(&id, &rlimits, &bounded, &e) < 0) {
        fail(out, spec, STEP_EXEC, EINVAL, "%s", e.text);
        return;
    }
    if (open_ends(spec, console, &ends, out) < 0)
        return;
    cpu_set_t cpus;
    const struct last_steps last = {.identity = spec->uid >= 0 ? &id : NULL,
                                    .rlimits = bounded ? &rlimits : NULL,
                                    .cpus = cpus_near(spec, &cpus) ? &cpus : NULL,
                                    .v1_fds = groups->v1_fds,
                                    .v1_must_hold = spec->groups.limits.mem_mib > 0,
                                    .lock_fd = lock_fd,
                                    .pty = console && console->pty,
                                    .shepherd = getpid(),
                                    .death_signal = SIGKILL};
    char **account_env = spec->login && last.identity ? login_env(&id, spec->env) : NULL;
    char *const *env = account_env ? account_env : spec->env;
    if (spec->screen && attach)
        start_in_screen(spec, &last, env, groups->fd, attach, &ends, out);
    else if (prepare_setup(spec, out) == 0)
        spawn_command(spec, &last, env, groups->fd, &ends, out);
    login_env_free(account_env);
    if (ends.close_fd >= 0)
        close(ends.close_fd);
}
