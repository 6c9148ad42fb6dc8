/* `berth compat`: which drop-in commands there are, their links in a folder that somebody
 * names, and one of them without a link. Nobody's system gets surprising names otherwise. */
#include "cli/compat/compat.h"

#include <errno.h>
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
#include "base/text.h"
#include "cli/cli.h"
#include "cli/opt.h"

int
compat_vfail(int status, const char *name, const char *fmt, va_list ap)
{
    auto_buf struct buf out = BUF_INIT;

    buf_addf(&out, "%s: ", name);
    buf_addv(&out, fmt, ap);
    buf_addc(&out, '\n');
    (void)file_write_all(STDERR_FILENO, out.data, out.len);
    return status;
}

int
compat_fail(int status, const char *name, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)compat_vfail(status, name, fmt, ap);
    va_end(ap);
    return status;
}

int
compat_say(const char *fmt, ...)
{
    auto_buf struct buf out = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&out, fmt, ap);
    va_end(ap);
    buf_addc(&out, '\n');
    return cli_put(&out);
}

static const struct page page = {
    .usage = "berth compat list | install DIR | NAME [arguments]",
    .about = "Berth under the names, options and files of other schedulers.",
    .notes = "list          the commands that there are\n"
             "install DIR   links to them in DIR, which is made; put it into your PATH\n"
             "NAME ...      one of them, without a link: berth compat gpusched jobs.txt",
};

static int
list(void)
{
    auto_buf struct buf out = BUF_INIT;

    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (!t->help)
            continue;
        buf_addf(&out, "%-22s  %s\n", t->name, t->help);
        for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++)
            buf_addf(&out, "%-22s  the same\n", t->aliases[i]);
    }
    return cli_put(&out);
}

/* A link of ours is made anew; anything else that has the name is somebody's. */
static int
make_link(const char *self, const char *dir, const char *name, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    char old[PATH_MAX];
    ssize_t n = readlink(path, old, sizeof old - 1);

    if (n > 0) {
        const char *slash;

        old[n] = '\0';
        slash = strrchr(old, '/');
        if (strcmp(slash ? slash + 1 : old, "berth") == 0)
            (void)unlink(path);
    }
    if (symlink(self, path) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(e, ERR_REFUSED,
                       "%s is there already and is not Berth's; move it away, or name another "
                       "folder",
                       path);
    return err_errno(e, ERR_FAILED, errno, "cannot make the link %s", path);
}

static int
install_tool(const struct compat_tool *t, const char *self, const char *dir, struct err *e)
{
    if (make_link(self, dir, t->name, e) < 0)
        return -1;
    for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++) {
        if (make_link(self, dir, t->aliases[i], e) < 0)
            return -1;
    }
    return 0;
}

static int
install(const char *dir)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_buf struct buf out = BUF_INIT;
    struct err e = {0};

    if (!self)
        return cli_usage("cannot tell where this program lies: %s", strerror(errno));
    if (file_mkdirs(dir, 0755, &e) < 0)
        return cli_fail(&e);
    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (!t->help)
            continue;
        if (install_tool(t, self, dir, &e) < 0)
            return cli_fail(&e);
        buf_addf(&out, "%s/%s\n", dir, t->name);
    }
    return cli_put(&out);
}

static int
unknown(const char *word)
{
    const char *names[32] = {"list", "install"};
    auto_buf struct buf shown = BUF_INIT;
    const char *nearest;
    size_t n = 2;

    for (const struct compat_tool *t = compat_tools; t->name && n < 31; t++)
        names[n++] = t->name;
    nearest = text_nearest(word, names);
    text_add_safe(&shown, word, strlen(word), 60);
    if (nearest)
        return cli_usage("compat: there is no '%s'; did you mean '%s'?", buf_str(&shown),
                         nearest);
    return cli_usage("compat: there is no '%s'; 'berth compat list' says what there is",
                     buf_str(&shown));
}

int
cmd_compat(struct cli *cli, int argc, char **argv)
{
    const struct compat_tool *tool;

    (void)cli;
    if (argc < 2)
        return opt_print_page(&page);
    tool = compat_find(argv[1]);
    if (tool)
        return tool->run(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return opt_print_page(&page);
    if (strcmp(argv[1], "list") == 0 && argc == 2)
        return list();
    if (strcmp(argv[1], "install") == 0) {
        if (argc == 3)
            return install(argv[2]);
        return cli_usage("compat install: into which folder? For example: berth compat "
                         "install ~/.local/bin");
    }
    return unknown(argv[1]);
}
