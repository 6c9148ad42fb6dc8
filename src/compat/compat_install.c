/* Installs the drop-in commands into a folder: a link to this program for each name, and for
 * names ending in .py a file that is valid shell and valid Python, because people and their
 * scripts type `python scheduler.py start`. Files of other origin under these names are
 * kept. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/py/pytext.h"

#define NAMES_MAX  64
#define SCRIPT_MAX 65536
#define MARK       "#!/bin/sh\n''':' # made by berth compat install\n"

static bool
is_among(const char *word, char *const *chosen, int n)
{
    for (int i = 0; i < n; i++)
        if (word && strcmp(word, chosen[i]) == 0)
            return true;
    return false;
}

/* Without a choice, every tool outside a group is chosen. */
static bool
is_chosen(const struct compat_tool *t, char *const *chosen, int n)
{
    bool is_said = is_among(t->name, chosen, n) || is_among(t->group, chosen, n);

    for (int i = 0; i < COMPAT_ALIASES_MAX; i++)
        is_said |= is_among(t->aliases[i], chosen, n);
    return n > 0 ? is_said : !t->group;
}

/* Names and aliases of the chosen tools; chosen NULL: of all tools. */
static size_t
list_names(const char *names[NAMES_MAX], char *const *chosen, int n_chosen)
{
    size_t n = 0;

    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (!t->help || (chosen && !is_chosen(t, chosen, n_chosen)))
            continue;
        if (n + 1 + COMPAT_ALIASES_MAX > NAMES_MAX)
            err_abort("more than %d drop-in commands", NAMES_MAX);
        names[n++] = t->name;
        for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++)
            names[n++] = t->aliases[i];
    }
    return n;
}

enum what { NOTHING, OURS, OTHERS };

/* Earlier versions linked to berth itself. */
static enum what
what_is(const char *path)
{
    auto_buf struct buf text = BUF_INIT;
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    const char *name;
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? NOTHING : OTHERS;
    if (n > 0) {
        target[n] = '\0';
        name = compat_name(target);
        return strcmp(name, "berth-compat") == 0 || strcmp(name, "berth") == 0 ? OURS : OTHERS;
    }
    if (!S_ISREG(st.st_mode) || file_read(path, SCRIPT_MAX, &text, NULL) < 0)
        return OTHERS;
    return strncmp(buf_str(&text), MARK, sizeof MARK - 1) == 0 ? OURS : OTHERS;
}

static bool
is_python(const char *name)
{
    size_t n = strlen(name);

    return n > 3 && strcmp(name + n - 3, ".py") == 0;
}

/* To the shell, ''' is an empty string followed by ':' and exec never returns; the quote in
 * the last line keeps the rest well formed. To Python, the shell part is one string. */
static int
make_script(const char *path, const char *name, const char *self, struct err *e)
{
    auto_buf struct buf text = BUF_INIT, shown = BUF_INIT;

    if (strpbrk(self, "'\\\n"))
        return err_set(e, ERR_REFUSED,
                       "a folder of %s has a quote, a backslash or a line's end in its name",
                       self);
    py_add_repr(&shown, self);
    buf_addf(&text, MARK "exec '%s' %s \"$@\"\n'''\nimport os\nimport sys\n\n", self, name);
    buf_addf(&text, "os.execv(%s, [\"%s\"] + sys.argv[1:])\n#'\n", buf_str(&shown), name);
    return file_write_atomic_at(AT_FDCWD, path, text.data, text.len, 0755, false, e);
}

static int
make_link(const char *path, const char *self, struct err *e)
{
    (void)unlink(path);
    if (symlink(self, path) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the link %s", path);
    return 0;
}

/* Check before the first change, so that install does all or nothing as far as possible. */
static int
check_names(const char *dir, const char *const *names, size_t n, struct err *e)
{
    auto_buf struct buf there = BUF_INIT;

    for (size_t i = 0; i < n; i++) {
        auto_free char *path = xasprintf("%s/%s", dir, names[i]);

        if (what_is(path) == OTHERS)
            buf_addf(&there, "%s%s", there.len ? ", " : "", path);
    }
    if (there.len == 0)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "there already, and not Berth's: %s; move it away, or name another folder",
                   buf_str(&there));
}

int
compat_install(const char *dir, char *const *chosen, int n_chosen)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_buf struct buf out = BUF_INIT;
    const char *names[NAMES_MAX];
    size_t n = list_names(names, chosen, n_chosen);
    struct err e = {0};

    if (!self)
        return cli_usage("cannot tell where this program lies: %s", strerror(errno));
    if (file_mkdirs(dir, 0755, &e) < 0 || check_names(dir, names, n, &e) < 0)
        return cli_fail(&e);
    for (size_t i = 0; i < n; i++) {
        auto_free char *path = xasprintf("%s/%s", dir, names[i]);
        int rc = is_python(names[i]) ? make_script(path, names[i], self, &e)
                                     : make_link(path, self, &e);

        if (rc < 0)
            return cli_fail(&e);
        buf_addf(&out, "%s\n", path);
    }
    return cli_put(&out);
}

int
compat_remove(const char *dir)
{
    auto_buf struct buf out = BUF_INIT;
    const char *names[NAMES_MAX];
    size_t n = list_names(names, NULL, 0);
    struct err e = {0};

    for (size_t i = 0; i < n; i++) {
        auto_free char *path = xasprintf("%s/%s", dir, names[i]);

        if (what_is(path) != OURS)
            continue;
        if (unlink(path) < 0) {
            err_errno(&e, ERR_FAILED, errno, "cannot remove %s", path);
            return cli_fail(&e);
        }
        buf_addf(&out, "%s\n", path);
    }
    if (out.len == 0)
        return cli_usage("there are none of Berth's commands in %s", dir);
    return cli_put(&out);
}
