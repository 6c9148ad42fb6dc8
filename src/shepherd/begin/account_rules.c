/* This machine's rules for an account: see account_rules.h. First shadow(5), with messages
 * that say how to fix the problem; then PAM's account management, which has its own rules
 * (pam_access, sssd) but often says only that access was denied. A PAM session is opened for
 * pam_limits and closed right away: the job gets its limits, and no session stays open whose
 * end could be missed. */
#include "shepherd/begin/account_rules.h"

#include <errno.h>
#include <pwd.h>
#include <shadow.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/install_paths.h"
#include "sys/rlimits.h"

#ifdef HAVE_PAM
#include <security/pam_appl.h>
#include <security/pam_ext.h>
#include <syslog.h>
#include <utmp.h>
#endif

#define DAY_S 86400

__attribute__((format(printf, 3, 4))) static void
deny(struct account_verdict *out, int errnum, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out->text, sizeof out->text, fmt, ap);
    va_end(ap);
    out->errnum = errnum;
    out->may_run = false;
}

/* usermod -L puts a ! in front of the password hash. An account that never had a password
 * (useradd without passwd, a login with keys) has ! or * without a hash. */
static bool
is_locked(const char *password)
{
    return password[0] == '!' && strlen(password + 1) >= 13;
}

static void
check_shadow(const struct passwd *pw, const struct account_rules *rules,
             struct account_verdict *out)
{
    const struct spwd *sp = getspnam(pw->pw_name);
    if (!sp)
        return; /* the user directory does not disclose it; PAM's modules may know */
    if (sp->sp_expire >= 0 && time(NULL) / DAY_S >= sp->sp_expire)
        deny(out, 0, "the account %s has expired (chage -E)", pw->pw_name);
    else if (!rules->locked_runs && sp->sp_pwdp && is_locked(sp->sp_pwdp))
        deny(out, 0, "the account %s is locked (usermod -L)", pw->pw_name);
}

#ifdef HAVE_PAM

/* The modules' reasons for refusal. */
struct reasons {
    int n;
    char last[ACCOUNT_TEXT_MAX];
};

/* Collects the reasons; prompts fail, because no user is there to answer. */
static int
converse(int n, const struct pam_message **messages, struct pam_response **answers, void *ctx)
{
    struct reasons *said = ctx;
    for (int i = 0; i < n; i++) {
        if (messages[i]->msg_style != PAM_ERROR_MSG && messages[i]->msg_style != PAM_TEXT_INFO)
            return PAM_CONV_ERR;
        if (messages[i]->msg_style != PAM_ERROR_MSG)
            continue;
        said->n++;
        snprintf(said->last, sizeof said->last, "%s", messages[i]->msg);
    }
    *answers = calloc((size_t)n, sizeof **answers);
    return *answers ? PAM_SUCCESS : PAM_BUF_ERR;
}

/* An expired password does not matter: a login asks for a new one, but no user is there to
 * type it for a job. */
static bool
is_permission(int rc)
{
    return rc == PAM_SUCCESS || rc == PAM_NEW_AUTHTOK_REQD;
}

/* PAM itself failed, so nothing is known about the account. */
static bool
is_trouble(int rc)
{
    return rc == PAM_OPEN_ERR || rc == PAM_SYMBOL_ERR || rc == PAM_SERVICE_ERR ||
           rc == PAM_SYSTEM_ERR || rc == PAM_BUF_ERR || rc == PAM_AUTHINFO_UNAVAIL ||
           rc == PAM_ABORT || rc == PAM_CONV_ERR || rc == PAM_MODULE_UNKNOWN;
}

/* Lifts all limits as far as the kernel allows, so that any later difference was set by
 * PAM. */
static void
lift_limits(struct rlimit before[RLIM_NLIMITS])
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
        __rlimit_resource_t which = (__rlimit_resource_t)i;
        if (getrlimit(which, &before[i]) < 0 || setrlimit(which, &none) == 0)
            continue;
        const struct rlimit most = {before[i].rlim_max, before[i].rlim_max};
        (void)setrlimit(which, &most);
    }
}

static void
put_limits_back(const struct rlimit before[RLIM_NLIMITS])
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)setrlimit((__rlimit_resource_t)i, &before[i]);
}

static void
note_limits(const struct rlimit lifted[RLIM_NLIMITS], struct buf *out)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit now;
        if (getrlimit((__rlimit_resource_t)i, &now) < 0 ||
            (now.rlim_cur == lifted[i].rlim_cur && now.rlim_max == lifted[i].rlim_max))
            continue;
        rlimits_add(out, i, &now);
    }
}

/* pam_limits refused the session because of maxlogins or maxsyslogins, which limit logins, not
 * jobs. The limits are set by then. Only its words tell, and only if no other module has said
 * why it refuses. */
static bool
is_login_count(int rc, const struct reasons *said)
{
    return rc == PAM_PERM_DENIED && said->n == 1 &&
           strcasestr(said->last, "too many logins for");
}

/* Depending on how PAM was built, pam_limits counts the logins in utmp or logind's sessions. In
 * an empty utmp it finds none, so that its refusal does not hide another module's. */
static int
take_session_limits(pam_handle_t *pam, struct reasons *said, struct buf *limits)
{
    struct rlimit before[RLIM_NLIMITS], lifted[RLIM_NLIMITS];
    *said = (struct reasons){.n = 0};
    (void)utmpname("/dev/null");
    lift_limits(before);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit((__rlimit_resource_t)i, &lifted[i]);
    int rc = pam_open_session(pam, 0);
    if (is_login_count(rc, said)) {
        pam_syslog(pam, LOG_NOTICE, "the number of logins does not apply to jobs");
        rc = PAM_SUCCESS;
    }
    if (rc == PAM_SUCCESS) {
        note_limits(lifted, limits);
        (void)pam_close_session(pam, PAM_SILENT);
    }
    put_limits_back(before);
    return rc;
}

/* PAM reads /etc/pam.d and its vendor folder; an installation elsewhere has its file below its
 * own etc. *folder: owned, NULL for PAM's own places. Returns the service's name. */
static const char *
find_service(const char *service, char **folder)
{
    const char *slash = strrchr(service, '/');
    if (slash) {
        *folder = xstrndup(service, (size_t)(slash - service));
        return slash + 1;
    }
    static const char *const usual[] = {"/etc/pam.d", "/usr/lib/pam.d", "/usr/share/pam.d"};
    *folder = NULL;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        auto_free char *path = xasprintf("%s/%s", usual[i], service);
        if (access(path, F_OK) == 0)
            return service;
    }
    *folder = xstrdup(BERTH_SYSCONFDIR "/pam.d");
    return service;
}

/* Without the service's file the machine has no rules for jobs. PAM would fall back to
 * "other", which often denies everything. */
static bool
has_service(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder ? folder : "", name);
    return !folder || access(path, F_OK) == 0;
}

/* Returns a code of PAM; *said has the reasons, or the code in words. */
static int
ask_pam(const struct passwd *pw, const char *name, const char *folder, struct reasons *said,
        struct buf *limits)
{
    const struct pam_conv conv = {converse, said};
    pam_handle_t *pam = NULL;
    *said = (struct reasons){.n = 0};
    int rc = pam_start_confdir(name, pw->pw_name, &conv, folder, &pam);
    if (rc == PAM_SUCCESS)
        rc = pam_acct_mgmt(pam, 0);
    if (is_permission(rc))
        rc = take_session_limits(pam, said, limits);
    if (rc != PAM_SUCCESS && !said->last[0])
        snprintf(said->last, sizeof said->last, "%s", pam_strerror(pam, rc));
    if (pam)
        (void)pam_end(pam, rc);
    return rc;
}

static bool
can_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return pid > 0;
}

/* If pam_unix cannot start its helper it reports a refusal: so one counts only if it comes
 * twice, and processes can be made. */
static void
check_pam(const struct passwd *pw, const char *service, struct account_verdict *out)
{
    auto_free char *folder = NULL;
    const char *name = find_service(service, &folder);
    struct reasons said;
    if (!has_service(folder, name))
        return;
    int rc = ask_pam(pw, name, folder, &said, &out->limits);
    if (rc != PAM_SUCCESS && !is_trouble(rc))
        rc = ask_pam(pw, name, folder, &said, &out->limits);
    if (rc != PAM_SUCCESS)
        deny(out, is_trouble(rc) || !can_fork() ? EAGAIN : 0,
             "PAM (service %s) does not let %s run jobs: %s", name, pw->pw_name, said.last);
}

#endif

void
account_check(const struct passwd *pw, const struct account_rules *rules,
              struct account_verdict *out)
{
    *out = (struct account_verdict){.may_run = true, .limits = BUF_INIT};
    check_shadow(pw, rules, out);
#ifdef HAVE_PAM
    if (out->may_run && rules->service[0])
        check_pam(pw, rules->service, out);
#endif
}
