/* The files and folders of an instance; see places.h. */
#include "wire/places.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/install_paths.h"
#include "wire/account.h"

static char *
absolute(const char *path)
{
    if (path[0] == '/')
        return xstrdup(path);
    auto_free char *cwd = getcwd(NULL, 0);
    return xasprintf("%s/%s", cwd ? cwd : "", path);
}

static int
state_home(char **out, struct err *e)
{
    const char *xdg = getenv("XDG_STATE_HOME");
    if (xdg && xdg[0] == '/') {
        *out = xasprintf("%s/berth", xdg);
        return 0;
    }
    const char *home = getenv("HOME");
    auto_account struct account account = ACCOUNT_INIT;
    if (!home || home[0] != '/')
        home = account_by_uid(getuid(), &account) ? account.home : NULL;
    if (!home || home[0] != '/')
        return err_set(e, ERR_FAILED,
                       "no home directory to keep the queue in; set HOME, or choose a folder "
                       "with --dir DIR");
    *out = xasprintf("%s/.local/state/berth", home);
    return 0;
}

/* In /tmp any user can create our folder first. If another user did, the socket goes below the
 * home folder, and stays there while it exists; else that user could switch us back and
 * forth. */
static char *
tmp_socket(const char *base)
{
    auto_free char *folder = xasprintf("/tmp/berth-%lu", (unsigned long)getuid());
    auto_free char *at_home = xasprintf("%s/run/berth.sock", base);
    struct stat st;
    bool is_free = lstat(folder, &st) < 0;
    bool is_ours = !is_free && S_ISDIR(st.st_mode) && st.st_uid == getuid();
    if ((is_free || is_ours) && (lstat(at_home, &st) < 0 || !S_ISSOCK(st.st_mode)))
        return xasprintf("%s/berth.sock", folder);
    return TAKE(at_home);
}

static bool
is_own_folder(const char *path)
{
    struct stat st;
    return path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && access(path, W_OK) == 0;
}

char *
places_runtime_dir(void)
{
    const char *named = getenv("XDG_RUNTIME_DIR");
    auto_free char *usual = xasprintf("/run/user/%lu", (unsigned long)geteuid());
    if (named && is_own_folder(named))
        return xstrdup(named);
    return is_own_folder(usual) ? TAKE(usual) : NULL;
}

static char *
runtime_socket(const char *base)
{
    auto_free char *run = places_runtime_dir();
    return run ? xasprintf("%s/berth/berth.sock", run) : tmp_socket(base);
}

static void
fill(struct places *p, const char *base)
{
    p->state = xasprintf("%s/state", base);
    p->logs = xasprintf("%s/logs", base);
    p->log = xasprintf("%s/daemon.log", base);
    p->sim = xasprintf("%s/sim", base);
    p->attach = xasprintf("%s/attach", base);
    p->mps = xasprintf("%s/mps", base);
}

int
places_find(const char *dir, struct places *out, struct err *e)
{
    *out = (struct places){0};
    if (!dir || !dir[0])
        dir = getenv("BERTH_DIR");
    if (dir && dir[0]) {
        out->root = absolute(dir);
        fill(out, out->root);
        out->socket = xasprintf("%s/berth.sock", out->root);
        return 0;
    }
    auto_free char *base = NULL;
    if (state_home(&base, e) < 0)
        return -1;
    fill(out, base);
    out->socket = runtime_socket(base);
    return 0;
}

int
places_system(const char *dir, struct places *out, struct err *e)
{
    const char *variable = getenv("BERTH_DIR");
    *out = (struct places){.system = true};
    if ((!dir || !dir[0]) && variable && variable[0])
        return err_set(e, ERR_USAGE,
                       "--system uses /run/berth, but BERTH_DIR is set to %s; unset it, or use "
                       "--dir %s for a system daemon there",
                       variable, variable);
    if (dir && dir[0]) {
        out->root = absolute(dir);
        fill(out, out->root);
        out->socket = xasprintf("%s/berth.sock", out->root);
        return 0;
    }
    out->state = xstrdup("/var/lib/berth/state");
    out->logs = xstrdup("/var/lib/berth/logs");
    out->log = xstrdup("/var/lib/berth/daemon.log");
    out->sim = xstrdup("/var/lib/berth/sim");
    out->attach = xstrdup("/run/berth/attach");
    out->mps = xstrdup("/run/berth/mps");
    out->socket = xstrdup(PLACES_SYSTEM_SOCKET);
    return 0;
}

/* Without a folder of the login's at its start, a daemon of a version that did not name its
 * socket listens in /tmp. */
static char *
unnamed_socket(const struct places *p)
{
    auto_free char *base = xstrndup(p->state, strlen(p->state) - strlen("/state"));
    auto_free char *other = tmp_socket(base);
    bool is_there = access(p->socket, F_OK) < 0 && access(other, F_OK) == 0;
    return is_there ? TAKE(other) : xstrdup(p->socket);
}

/* Only a lock of our own counts: the home may be another user's, as after `sudo -E`. */
char *
places_live_socket(const struct places *p)
{
    auto_free char *lock = xasprintf("%s/lock", p->state);
    auto_buf struct buf text = BUF_INIT;
    struct stat st;
    if (p->root || p->system || lstat(lock, &st) < 0 || st.st_uid != geteuid() ||
        file_read_locked_at(AT_FDCWD, lock, PLACES_LOCK_MAX, &text, NULL) <= 0)
        return xstrdup(p->socket);
    const char *path = strchr(buf_str(&text), '\n');
    size_t n = path ? strcspn(path + 1, "\n") : 0;
    if (path && path[1] == '/' && path[1 + n] == '\n')
        return xstrndup(path + 1, n);
    return unnamed_socket(p);
}

void
places_free(struct places *p)
{
    free(p->root);
    free(p->socket);
    free(p->state);
    free(p->logs);
    free(p->log);
    free(p->sim);
    free(p->attach);
    free(p->mps);
    *p = (struct places){0};
}

const char *
places_lock_dir(void)
{
    const char *moved = getenv("BERTH_LOCK_DIR");
    if (moved && moved[0])
        return moved;
    return access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
}

/* src/<layer> of a build tree, by program: there, other programs are in sibling folders. */
static const char *
build_folder(const char *name)
{
    if (strcmp(name, "berth-shepherd") == 0 || strcmp(name, "berth-user") == 0)
        return "shepherd";
    if (strcmp(name, "berth-probe") == 0)
        return "probe";
    if (strcmp(name, "berth-compat") == 0)
        return "compat";
    return strcmp(name, "berthd") == 0 ? "daemon" : "cli";
}

char *
places_program(const char *name, struct err *e)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
        char *tries[] = {
            xasprintf("%s/%s", self, name),
            xasprintf("%s/../libexec/berth/%s", self, name),
            xasprintf("%s/../../bin/%s", self, name),
            xasprintf("%s/../%s/%s", self, build_folder(name), name),
        };
        char *found = NULL;
        for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
            if (!found && access(tries[i], X_OK) == 0)
                found = TAKE(tries[i]);
            free(tries[i]);
        }
        if (found)
            return found;
    }
    auto_free char *helper = xasprintf("%s/%s", BERTH_LIBEXECDIR, name);
    auto_free char *command = xasprintf("%s/%s", BERTH_BINDIR, name);
    if (access(helper, X_OK) == 0)
        return TAKE(helper);
    if (access(command, X_OK) == 0)
        return TAKE(command);
    err_set(e, ERR_FAILED, "%s is not installed beside this program nor in %s", name,
            BERTH_LIBEXECDIR);
    return NULL;
}
