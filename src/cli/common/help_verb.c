/* `berth help`: lists the verbs, on one screen. `berth help VERB` is `berth VERB --help`. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/other_schedulers.h"
#include "wire/client.h"

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

static int
print_page(struct cli *cli, char *name)
{
    char *args[] = {name, help_word, NULL};

    if (cli->json)
        return cli_usage("'berth help %s' has no JSON output; 'berth help' has", name);
    for (const struct verb *v = cli->verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v->run(cli, 2, args);
    return cli_unknown_verb(cli, name);
}

/* {"version":1,"verbs":[{"verb","help"}]} */
static int
print_json(const struct cli *cli)
{
    auto_json json_t *answer = json_pack("{s:i, s:[]}", "version", 1, "verbs");

    for (const struct verb *v = cli->verbs; v->name; v++)
        json_array_append_new(json_object_get(answer, "verbs"),
                              json_pack("{s:s, s:s}", "verb", v->name, "help", v->help));
    return cli_put_json(answer);
}

int
cmd_help(struct cli *cli, int argc, char **argv)
{
    auto_buf struct buf out = BUF_INIT;
    struct opt_reader r;

    opt_begin(&r, cli, NULL, argc, argv);
    if (opt_next(&r) == OPT_EXIT)
        return r.status;
    if (r.n_words > 0 && strcmp(r.words[0], "help") != 0)
        return print_page(cli, r.words[0]);
    if (cli->json)
        return print_json(cli);
    buf_adds(&out,
             "usage: berth [--dir DIR] VERB ...      without VERB: show machine and queue\n\n");
    for (const struct verb *v = cli->verbs; v->name; v++)
        buf_addf(&out, "  %-10s %s\n", v->name, v->help);
    buf_adds(&out,
             "\n'berth VERB --help' shows its options. Everywhere: --dir DIR (BERTH_DIR), "
             "--socket PATH, --json.\n");
    return cli_put(&out);
}
