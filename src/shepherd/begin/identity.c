/* Running as the user: see identity.h. User accounts may come from a network service and
 * folders from a file server, so a separate process, berth-user (berth_user.c), asks for both
 * and can be abandoned. The supervisor stays root: it must be able to end the job whatever it
 * becomes, and its record must be out of the user's reach. command.c calls this. */
#include "shepherd/begin/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "shepherd/begin/berth_user.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/command.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/keyring.h"
#include "sys/rlimits.h"
#include "sys/self.h"
#include "sys/spawn.h"

#define PATIENCE_MS 30000 /* a directory or file server that takes longer counts as down */

void
identity_free(struct identity *id)
{
    if (id->cwd_fd >= 0)
        close(id->cwd_fd);
    free(id->groups);
    free(id->answer);
    *id = (struct identity)IDENTITY_INIT;
}

#define N_FDS 3 /* folder, log, error file */

/* The question to berth-user; see berth_user.h. */
struct question {
    int64_t uid; /* -1: by name */
    const char *name, *cwd, *log;
    const char *error; /* NULL: none */
    mode_t umask;
    bool log_is_ours, read_log, truncate;
    const char *pam; /* NULL: not asked */
    bool locked_runs;
};

static int
send_question(int fd, const struct question *ask)
{
    auto_buf struct buf q = BUF_INIT;
    if (ask->uid < 0)
        buf_addz(&q, USER_BY_NAME);
    else
        buf_addzf(&q, "%lld", (long long)ask->uid);
    buf_addzf(&q, "%o", ask->umask);
    buf_addz(&q, ask->log_is_ours ? "own" : "named");
    buf_addz(&q, ask->read_log ? "read" : "write");
    buf_addz(&q, ask->name ? ask->name : "");
    buf_addz(&q, ask->cwd);
    buf_addz(&q, ask->log);
    buf_addz(&q, ask->pam ? ask->pam : "");
    buf_addz(&q, ask->locked_runs ? "run" : "refuse");
    buf_addz(&q, ask->error ? ask->error : "");
    buf_addz(&q, ask->truncate ? "truncate" : "append");
    if (q.len > USER_MESSAGE_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return send(fd, q.data, q.len, MSG_NOSIGNAL) == (ssize_t)q.len ? 0 : -1;
}

static pid_t
start_helper(int theirs, int *errnum)
{
    auto_free char *program = self_sibling("berth-user");
    char *argv[] = {program, NULL}, *envp[] = {NULL};
    enum spawn_stage stage;
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = envp;
    for (int fd = 0; fd < 3; fd++)
        s.fds[fd] = fd;
    s.fds[USER_FD] = theirs;
    s.n_fds = USER_FD + 1;
    s.death_signal = SIGKILL;
    return spawn_process(&s, errnum, &stage);
}

/* Receives one packet with up to N_FDS descriptors. Returns its length; 0: the peer closed
 * without an answer; -1: errno. */
static ssize_t
receive(int fd, char *text, size_t size, int fds[N_FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * N_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = text, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    if (!file_await(fd, PATIENCE_MS)) {
        errno = ETIMEDOUT;
        return -1;
    }
    ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return n;
}

/* The next string in a packet; NULL after the last. */
static const char *
next_string(const char **at, const char *end)
{
    const char *s = *at;
    if (s >= end)
        return NULL;
    *at = s + strlen(s) + 1;
    return s;
}

static int
read_groups(const char *list, struct identity *id)
{
    size_t n = 1;
    for (const char *p = list; *p; p++)
        n += *p == ',';
    id->groups = xcalloc(n, sizeof *id->groups);
    for (const char *at = list; *at; at += *at == ',') {
        char digits[16];
        int64_t gid;
        size_t len = strcspn(at, ",");
        if (len == 0 || len >= sizeof digits)
            return -1;
        memcpy(digits, at, len);
        digits[len] = '\0';
        if (parse_int(digits, 0, UINT32_MAX - 1, &gid, NULL) < 0)
            return -1;
        id->groups[id->n_groups++] = (gid_t)gid;
        at += len;
    }
    return 0;
}

/* Parses: USER_NO errno words step. */
static int
read_refusal(const struct question *question, const char *const *fields, struct command *out)
{
    int64_t errnum = 0, step = STEP_ACCOUNT;
    if (parse_int(fields[0], 0, 4096, &errnum, NULL) < 0 ||
        (fields[2] && parse_int(fields[2], STEP_OURS, STEP_LAST, &step, NULL) < 0))
        errnum = 0;
    out->errnum = (int)errnum;
    out->blame = blame_of(question->log_is_ours, (enum step)step, out->errnum);
    snprintf(out->text, sizeof out->text, "%s", fields[1]);
    return -1;
}

/* Parses USER_YES name home shell uid gid groups limits, or a refusal. */
static int
read_answer(const struct question *question, const char *at, const char *end,
            struct identity *id, struct command *out)
{
    const char *verdict = next_string(&at, end), *fields[7] = {NULL};
    int64_t n, uid;
    for (int i = 0; i < 7; i++)
        fields[i] = next_string(&at, end);
    if (verdict && strcmp(verdict, USER_NO) == 0 && fields[1])
        return read_refusal(question, fields, out);
    if (!verdict || strcmp(verdict, USER_YES) != 0 || !fields[6] ||
        parse_int(fields[3], 0, UINT32_MAX - 1, &uid, NULL) < 0 ||
        parse_int(fields[4], 0, UINT32_MAX - 1, &n, NULL) < 0 || read_groups(fields[5], id)) {
        snprintf(out->text, sizeof out->text, "berth-user gave an invalid answer");
        return -1;
    }
    if (question->uid >= 0 && uid != question->uid) {
        snprintf(out->text, sizeof out->text, "berth-user answered for user %u instead of %u",
                 (unsigned)uid, (unsigned)question->uid);
        return -1;
    }
    id->name = fields[0];
    id->home = fields[1];
    id->shell = fields[2];
    id->limits = fields[6];
    id->uid = (uid_t)uid;
    id->gid = (gid_t)n;
    return 0;
}

static int
ask(const struct question *question, int ours, struct identity *id, struct command *out)
{
    int fds[N_FDS] = {-1, -1, -1};
    id->answer = xcalloc(1, USER_MESSAGE_MAX + 1);
    ssize_t n = send_question(ours, question);
    if (n == 0)
        n = receive(ours, id->answer, USER_MESSAGE_MAX, fds);
    id->cwd_fd = fds[0];
    out->log_fd = fds[1];
    out->error_fd = fds[2];
    if (n > 0)
        return read_answer(question, id->answer, id->answer + n, id, out);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
        n = 0; /* it exited before reading the question */
    out->errnum = n < 0 ? errno : ECHILD;
    out->blame = blame_of(question->log_is_ours, STEP_ACCOUNT, out->errnum);
    snprintf(out->text, sizeof out->text, "cannot prepare the job as its user: %s",
             n == 0               ? "berth-user was killed"
             : errno == ETIMEDOUT ? "opening the account, folder or log took longer than 30 s"
                                  : strerror(errno));
    return -1;
}

static int
open_as(const struct question *question, struct identity *id, struct command *out)
{
    int pair[2], errnum = 0;
    *id = (struct identity)IDENTITY_INIT;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        out->errnum = errno;
        out->blame = BLAME_MACHINE;
        snprintf(out->text, sizeof out->text, "cannot make a socket pair: %s", strerror(errno));
        return -1;
    }
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    pid_t pid = start_helper(theirs, &errnum);
    close(TAKE_FD(theirs));
    if (pid < 0) {
        out->errnum = errnum;
        out->blame = BLAME_MACHINE;
        snprintf(out->text, sizeof out->text, "cannot start berth-user: %s", strerror(errnum));
        return -1;
    }
    int rc = ask(question, ours, id, out);
    bool is_away = out->errnum == ETIMEDOUT; /* reaped later with all other children */
    kill(pid, SIGKILL);                      /* its user may have stopped it */
    while (!is_away && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

int
identity_open(const struct spec *spec, struct identity *id, struct command *out)
{
    const struct question question = {.uid = spec->uid,
                                      .name = spec->user,
                                      .cwd = spec->cwd,
                                      .log = spec->log,
                                      .error = spec->error,
                                      .truncate = spec->truncate,
                                      .umask = spec->umask,
                                      .log_is_ours = spec->log_mkdir,
                                      .read_log = spec->attach != NULL,
                                      .pam = spec->pam,
                                      .locked_runs = spec->locked_runs};
    int rc = open_as(&question, id, out);
    id->drop_caps = (uint64_t)spec->drop_caps;
    id->no_new_privs = spec->no_new_privs;
    return rc;
}

int
identity_look_up(const struct spec *spec, struct identity *id)
{
    const struct question question = {
        .uid = spec->uid, .name = spec->user, .cwd = "/", .log = "", .locked_runs = true};
    struct command nothing = {.log_fd = -1};
    int rc = open_as(&question, id, &nothing);
    id->drop_caps = (uint64_t)spec->drop_caps;
    id->no_new_privs = spec->no_new_privs;
    return rc;
}

int
identity_open_account(const char *names, const char *cwd, struct identity *id,
                      struct command *out)
{
    const struct question question = {.uid = -1, .name = names, .cwd = cwd, .log = ""};
    return open_as(&question, id, out);
}

/* Set again after a change of user, which clears the parent-death signal. */
static int
die_with(pid_t parent, int sig)
{
    if (prctl(PR_SET_PDEATHSIG, sig) < 0)
        return errno;
    return getppid() == parent ? 0 : ESRCH;
}

int
identity_bound(const struct identity *id, struct rlimits *limits, bool *is_set, struct err *e)
{
    struct rlimits login;
    if (!id->limits || !id->limits[0])
        return 0;
    if (rlimits_parse(id->limits, &login, e) < 0)
        return -1;
    if (!*is_set)
        memset(limits, 0, sizeof *limits);
    rlimits_bound(limits, &login);
    *is_set = true;
    return 0;
}

/* Makes the kernel's audit attribute the job to its user, not to the administrator who
 * restarted the daemon. */
static void
be_audited_as(uid_t uid)
{
    char digits[16];
    auto_close int fd = open("/proc/self/loginuid", O_WRONLY | O_CLOEXEC);
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + uid % 10);
    while ((uid /= 10) > 0);
    if (fd >= 0)
        (void)file_write_all(fd, digits + n, sizeof digits - n);
}

/* A service may have a protective OOM score; its jobs must not inherit it. */
static void
be_an_ordinary_victim(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)file_write_all(fd, "0", 1);
}

/* Dropped from the bounding set, a capability is unavailable to all later programs, setuid or
 * not. */
static int
drop_from_reach(uint64_t capabilities)
{
    for (int i = 0; capabilities >> i; i++)
        if ((capabilities >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 &&
            errno != EINVAL) /* this kernel has no such capability */
            return -1;
    return 0;
}

/* Changing the user has cleared the effective set. Inheritable capabilities that a container
 * gave the daemon would return at the next exec, so clear those too. Root's own jobs keep
 * root's. */
static int
give_up_capabilities(const struct identity *id)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &head, sets) < 0)
        return -1;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        sets[i].inheritable = 0;
        if (id->uid != 0)
            sets[i].effective = sets[i].permitted = 0;
    }
    return (int)syscall(SYS_capset, &head, sets);
}

void
identity_disown(const struct identity *id)
{
    be_an_ordinary_victim();
    be_audited_as(id->uid);
}

int
identity_become(const struct identity *id, int death_signal)
{
    pid_t parent = getppid();
    int why = keyring_leave();
    if (why != 0)
        return why;
    if (drop_from_reach(id->drop_caps) < 0)
        return errno;
    if (setgroups(id->n_groups, id->groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
        setresuid(id->uid, id->uid, id->uid) < 0)
        return errno;
    if (id->uid != 0 && setuid(0) == 0)
        return EPERM; /* never continue if root could be regained */
    if (give_up_capabilities(id) < 0 ||
        (id->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
        return errno;
    keyring_settle();
    if (fchdir(id->cwd_fd) < 0)
        return errno;
    return die_with(parent, death_signal);
}
