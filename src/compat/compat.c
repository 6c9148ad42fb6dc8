/* `berth compat`: which drop-in commands there are, their names in a folder that somebody says
 * (compat_install.c), and one of them without a name. Nobody's system gets surprising names
 * otherwise.
 */
#include "compat/compat.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/words/opt.h"

int
compat_fail(int status, const char *name, const char *fmt, ...)
{
    auto_buf struct buf out = BUF_INIT;
    va_list ap;

    buf_addf(&out, "%s: ", name);
    va_start(ap, fmt);
    buf_addv(&out, fmt, ap);
    va_end(ap);
    buf_addc(&out, '\n');
    (void)file_write_all(STDERR_FILENO, out.data, out.len);
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
    .usage = "berth compat list | install DIR | remove DIR | NAME [arguments]",
    .about = "Berth under the names, options and files of other schedulers.",
    .notes = "list          the commands that there are\n"
             "install DIR   puts them into DIR, which is made; have it in your PATH\n"
             "remove DIR    takes them out again\n"
             "NAME ...      one of them as it is: berth compat gpusched jobs.txt",
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

static int
unknown(const char *word)
{
    const char *names[32] = {"list", "install", "remove"};
    auto_buf struct buf shown = BUF_INIT;
    const char *nearest;
    size_t n = 3;

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
    if (strcmp(argv[1], "list") == 0)
        return argc == 2 ? list() : cli_usage("compat list takes no arguments");
    if (strcmp(argv[1], "install") == 0 || strcmp(argv[1], "remove") == 0) {
        bool install = argv[1][0] == 'i';

        if (argc != 3)
            return cli_usage("compat %s: %s which folder? For example: berth compat %s "
                             "~/.local/bin",
                             argv[1], install ? "into" : "from", argv[1]);
        return install ? compat_install(argv[2]) : compat_remove(argv[2]);
    }
    return unknown(argv[1]);
}
