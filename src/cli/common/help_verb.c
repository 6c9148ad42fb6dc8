/* `berth help`: the verbs, on one screen. `berth help VERB` is `berth VERB --help`. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/other_schedulers.h"

static char help_word[] = "--help";

int
cli_unknown_verb(const struct cli *cli, const char *word)
{
    const char *names[64];
    auto_buf struct buf shown = BUF_INIT;
    int n = 0;
    const char *here = habit_verb(word);
    const char *near;

    if (here)
        return cli_usage("unknown verb '%s'; Berth's equivalent: '%s'", word, here);
    for (const struct verb *v = cli->verbs; v->name && n < 63; v++)
        names[n++] = v->name;
    names[n] = NULL;
    text_add_safe(&shown, word, strlen(word), 60);
    near = text_nearest(word, names);
    if (near)
        return cli_usage("unknown verb '%s'; did you mean 'berth %s'?", buf_str(&shown), near);
    return cli_usage("unknown verb '%s'; 'berth help' lists them", buf_str(&shown));
}

int
cmd_help(struct cli *cli, int argc, char **argv)
{
    auto_buf struct buf out = BUF_INIT;

    for (const struct verb *v = cli->verbs; argc > 1 && v->name; v++) {
        char *args[] = {argv[1], help_word, NULL};

        if (strcmp(v->name, argv[1]) == 0 && strcmp(v->name, "help") != 0)
            return v->run(cli, 2, args);
    }
    if (argc > 1 && argv[1][0] != '-' && strcmp(argv[1], "help") != 0)
        return cli_unknown_verb(cli, argv[1]);
    buf_adds(&out,
             "usage: berth [--dir DIR] VERB ...      without VERB: show machine and queue\n\n");
    for (const struct verb *v = cli->verbs; v->name; v++)
        buf_addf(&out, "  %-10s %s\n", v->name, v->help);
    buf_adds(&out,
             "\n'berth VERB --help' shows its options. Everywhere: --dir DIR (BERTH_DIR), "
             "--socket PATH, --json.\n");
    return cli_put(&out);
}
