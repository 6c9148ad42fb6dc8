/* berth-user: looks a user up, asks whether the account may run jobs (account_rules.c),
 * becomes that user, enters the working folder, opens the log, hands both back and exits. It
 * is a separate process, because the account may come from a network service and the folder
 * from a file server: the supervisor gives it 30 s. Linked dynamically to the C library,
 * because user directories are loaded as modules. Implements the protocol of berth_user.h. */
#include "shepherd/begin/berth_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "shepherd/begin/account_rules.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/logfile.h"
#include "sys/keyring.h"

#define N_QUESTIONS    11
#define GROUPS_MAX_ASK 65536
#define ENTRY_MAX      (1 << 20) /* bytes of a directory entry */

#ifndef STATX_ATTR_MOUNT_ROOT /* missing in headers before 5.8 */
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

struct question {
    uid_t uid;
    mode_t umask;
    bool by_name;   /* name is a list of accounts; uid is not known */
    bool own_place; /* the log's path is the daemon's default */
    bool read;      /* clients will be served from the log */
    bool truncate;
    const char *name, *cwd, *log, *error;
    struct account_rules rules;
};

_Noreturn static void refuse(enum step step, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

_Noreturn static void
say_no(enum step step, int errnum, const char *words)
{
    char text[1400];
    int n = snprintf(text, sizeof text, "%s%c%d%c%s%c%d", USER_NO, '\0', errnum, '\0', words,
                     '\0', (int)step);
    (void)send(USER_FD, text, (size_t)n + 1, MSG_NOSIGNAL);
    _exit(0);
}

_Noreturn static void
refuse(enum step step, int errnum, const char *fmt, ...)
{
    char what[1024], text[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    /* The exit record has room for 159 bytes, so truncate the description rather than the
     * reason. */
    const char *why = errnum ? strerror(errnum) : "";
    snprintf(text, sizeof text, "%.*s%s%s", (int)(150 - strlen(why)), what, errnum ? ": " : "",
             why);
    say_no(step, errnum, text);
}

static void
read_question(char *text, struct question *q)
{
    ssize_t n = recv(USER_FD, text, USER_MESSAGE_MAX, 0);
    const char *field[N_QUESTIONS];
    char *at = text;
    int64_t uid = 0;
    if (n <= 0 || text[n - 1] != '\0')
        _exit(1);
    for (int i = 0; i < N_QUESTIONS; i++) {
        if (at >= text + n)
            _exit(1);
        field[i] = at;
        at += strlen(at) + 1;
    }
    bool by_name = strcmp(field[0], USER_BY_NAME) == 0;
    if (!by_name && parse_int(field[0], 0, UINT32_MAX - 1, &uid, NULL) < 0)
        _exit(1);
    *q = (struct question){
        .uid = (uid_t)uid,
        .by_name = by_name,
        .umask = (mode_t)strtoul(field[1], NULL, 8) & 0777,
        .own_place = strcmp(field[2], "own") == 0,
        .read = strcmp(field[3], "read") == 0,
        .name = field[4],
        .cwd = field[5],
        .log = field[6],
        .rules = {.service = field[7], .locked_runs = strcmp(field[8], "run") == 0},
        .error = field[9],
        .truncate = strcmp(field[10], "truncate") == 0};
}

/* For a directory that does not answer: another try may find the account. Shortages keep their
 * number, because all users have them. */
_Noreturn static void
refuse_for_now(const char *whom, int errnum)
{
    bool is_shortage = errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
    char text[150];
    snprintf(text, sizeof text, "the user directory does not answer for %s: %s", whom,
             strerror(errnum));
    say_no(STEP_ACCOUNT, is_shortage ? errnum : EAGAIN, text);
}

/* NULL: not found. That is only what a lookup without an error says: modules report a server
 * that does not answer by any error, even ENOENT (nslcd's) or ESRCH. But it need not be true:
 * many builds of sssd's module find nobody while sssd is stopped, and the answer is that of the
 * last module, whatever those before it said. The entry is in our own buffer: PAM's modules
 * look up other accounts, and the job could become the one that they found last. */
static const struct passwd *
look_up(const char *name, uid_t uid, const char *whom)
{
    static struct passwd entry;
    static char text[ENTRY_MAX];
    struct passwd *found = NULL;
    int why = name ? getpwnam_r(name, &entry, text, sizeof text, &found)
                   : getpwuid_r(uid, &entry, text, sizeof text, &found);
    if (why != 0)
        refuse_for_now(whom, why);
    return found;
}

/* The first existing account of a comma-separated list. */
static const struct passwd *
find_by_name(const char *names)
{
    auto_free char *copy = xstrdup(names);
    char *rest = copy, *name;
    while ((name = strsep(&rest, ","))) {
        const struct passwd *pw = look_up(name, 0, name);
        if (pw)
            return pw;
    }
    refuse(STEP_ACCOUNT, 0, "no account '%s' on this machine", names);
}

/* The account as it is now; the uid may have been given to another person since submission. */
static const struct passwd *
find_account(const struct question *q)
{
    if (q->by_name)
        return find_by_name(q->name);
    auto_free char *whom = xasprintf("user %u (%s)", q->uid, q->name[0] ? q->name : "no name");
    const struct passwd *pw = look_up(NULL, q->uid, whom);
    if (!pw)
        refuse(STEP_NOBODY, 0, "%s no longer has an account on this machine", whom);
    if (q->name[0] && strcmp(q->name, pw->pw_name) != 0)
        refuse(STEP_ACCOUNT, 0, "user %u was %s when the job was submitted, and is %s now",
               q->uid, q->name, pw->pw_name);
    return pw;
}

/* True if another file system is mounted here; also false if the kernel does not say (before
 * 5.8). Never waits for the file system to answer. */
static bool
is_mounted_on(int fd)
{
    struct statx x = {0};
    return statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &x) == 0 &&
           (x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Opens an existing folder. It belongs to the user, who can mount a file system (FUSE) on it
 * that responds, or fails to, at will; that must delay only this user's jobs. */
static int
enter_log_folder(const char *folder)
{
    auto_close int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        refuse(STEP_PLACE, errno, "cannot open the folder %s", folder);
    if (is_mounted_on(fd))
        refuse(STEP_PLACE, 0, "another file system is mounted on the folder of logs %s",
               folder);
    return TAKE_FD(fd);
}

/* Makes the user's own folder among the logs. Only root can create entries there, so nothing
 * hostile can be in its place, and failures are our fault, except for the user's quota. A
 * folder still owned by root is being made for another job of the user, or its maker was
 * killed. Returns the open folder: the log is created in it, whatever is mounted on its path
 * meanwhile. */
static int
make_log_folder(const char *log, const struct passwd *pw)
{
    auto_free char *copy = xstrdup(log);
    const char *folder = dirname(copy);
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        refuse(STEP_OURS, errno, "cannot make the folder %s", folder);
    auto_close int fd = enter_log_folder(folder);
    if (fstat(fd, &st) < 0)
        refuse(STEP_PLACE, errno, "cannot look at the folder %s", folder);
    if (st.st_uid == geteuid() && fchownat(fd, "", pw->pw_uid, pw->pw_gid, AT_EMPTY_PATH) < 0)
        refuse(errno == EDQUOT ? STEP_PLACE : STEP_OURS, errno,
               "cannot hand over the folder %s", folder);
    return TAKE_FD(fd);
}

static void
become(const struct passwd *pw)
{
    errno = keyring_leave();
    if (errno != 0 || initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        refuse(STEP_CHILD, errno, "cannot become the user %s", pw->pw_name);
    keyring_settle();
}

/* folder: the log's folder, if the daemon chose its path; else -1. */
static int
open_log(const struct question *q, int folder)
{
    auto_free char *copy = xstrdup(q->log);
    auto_free char *inside = xasprintf("/proc/self/fd/%d/%s", folder, basename(copy));
    const struct logfile f = {folder >= 0 ? inside : q->log, q->read, q->truncate,
                              q->own_place};
    /* The user must be able to reach the log by path too. */
    if (q->own_place && logfile_place_is_shut(q->log, true))
        refuse(STEP_OURS, EACCES, "cannot open the log %s", q->log);
    int fd = logfile_open(&f);
    if (fd < 0)
        refuse(STEP_LOG, errno, "cannot open the log %s", q->log);
    return logfile_make_readable(fd);
}

static int
open_error(const struct question *q)
{
    const struct logfile f = {.path = q->error, .truncate = q->truncate};
    int fd = logfile_open(&f);
    if (fd < 0)
        refuse(STEP_ERROR, errno, "cannot open the file for errors %s", q->error);
    return logfile_make_readable(fd);
}

/* log, error: -1 if there is none. */
static void
answer(const struct passwd *pw, const char *limits, int cwd, int log, int error)
{
    static gid_t groups[GROUPS_MAX_ASK];
    auto_buf struct buf text = BUF_INIT;
    int n = getgroups(GROUPS_MAX_ASK, groups);
    buf_addz(&text, USER_YES);
    buf_addz(&text, pw->pw_name);
    buf_addz(&text, pw->pw_dir);
    buf_addz(&text, pw->pw_shell);
    buf_addzf(&text, "%u", pw->pw_uid);
    buf_addzf(&text, "%u", pw->pw_gid);
    for (int i = 0; i < n; i++)
        buf_addf(&text, "%s%u", i ? "," : "", groups[i]);
    buf_addc(&text, '\0');
    buf_addz(&text, limits);
    const int fds[] = {cwd, log, error};
    const size_t n_bytes = sizeof fds[0] * (log < 0 ? 1 : error < 0 ? 2 : 3);
    union {
        char bytes[CMSG_SPACE(sizeof fds)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = text.data, .iov_len = text.len};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = CMSG_SPACE(n_bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_bytes);
    memcpy(CMSG_DATA(c), fds, n_bytes);
    if (text.len > USER_MESSAGE_MAX)
        refuse(STEP_ACCOUNT, E2BIG, "the user %s is in %d groups", pw->pw_name, n);
    if (sendmsg(USER_FD, &msg, MSG_NOSIGNAL) < 0)
        refuse(STEP_ACCOUNT, errno, "cannot pass on what was opened as the user %s",
               pw->pw_name);
}

int
main(void)
{
    static char text[USER_MESSAGE_MAX];
    struct question q;
    struct stat st;
    if (fstat(USER_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fprintf(stderr, "berth-user is started by berth-shepherd, not by hand.\n");
        return 2;
    }
    read_question(text, &q);
    const struct passwd *pw = find_account(&q);
    struct account_verdict account = {.may_run = true, .limits = BUF_INIT};
    if (!q.by_name)
        account_check(pw, &q.rules, &account);
    if (!account.may_run)
        say_no(STEP_ACCOUNT, account.errnum, account.text);
    auto_close int folder = q.own_place ? make_log_folder(q.log, pw) : -1;
    become(pw);
    umask(q.umask);
    if (chdir(q.cwd) < 0)
        refuse(STEP_FOLDER, errno, "cannot enter the working folder %s", q.cwd);
    auto_close int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cwd < 0)
        refuse(STEP_FOLDER, errno, "cannot open the working folder %s", q.cwd);
    auto_close int log = q.log[0] ? open_log(&q, folder) : -1;
    auto_close int error = q.error[0] ? open_error(&q) : -1;
    answer(pw, buf_str(&account.limits), cwd, log, error);
    buf_free(&account.limits);
    return 0;
}
