/* `berth config`: sample, check, show. spec/config.h has the table of settings. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/config_files.h"
#include "cli/common/opt.h"
#include "spec/config.h"

static const struct page page = {
    .usage = "berth config sample | check [FILE...] | show",
    .about =
        "sample  print every setting with its help, range and default, to start a file with\n"
        "check   check files of settings for errors\n"
        "show    print what a daemon started now would use, from all files",
    .notes = "Files: /etc/berth/config.yaml, then $XDG_CONFIG_HOME/berth/config.yaml\n"
             "(~/.config/berth/config.yaml). A key in a later file takes precedence.",
};

static int
check_files(char **paths, int n)
{
    int status = 0;

    for (int i = 0; i < n; i++) {
        struct config c;
        int rc;

        config_init(&c);
        rc = config_files_read_one(&c, paths[i]);
        status = rc ? rc : status;
        if (rc == 0)
            cli_say("%s is valid", paths[i]);
        config_free(&c);
    }
    return status;
}

static int
check_usual(void)
{
    struct config c;
    int status;

    config_init(&c);
    status = config_files_read(&c, true);
    config_free(&c);
    return status;
}

static int
show(const struct cli *cli)
{
    auto_buf struct buf out = BUF_INIT;
    struct config c;
    int status;

    config_init(&c);
    status = config_files_read(&c, false);
    if (status == 0 && cli->json) {
        buf_adds(&out, "{\"version\":1,\"settings\":");
        config_show_json(&c, &out);
        buf_adds(&out, "}\n");
    } else if (status == 0) {
        config_show(&c, &out);
    }
    config_free(&c);
    if (status == 0)
        status = cli_put(&out);
    return status;
}

static int
sample(void)
{
    auto_buf struct buf out = BUF_INIT;

    config_sample(&out);
    return cli_put(&out);
}

int
cmd_config(struct cli *cli, int argc, char **argv)
{
    static const char *const names[] = {"sample", "check", "show", NULL};
    struct opt_reader r;
    const char *word;
    const char *near;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    word = r.n_words ? r.words[0] : "";
    if (cli->json && (strcmp(word, "sample") == 0 || strcmp(word, "check") == 0))
        return cli_usage("'berth config %s' has no JSON output; 'berth config show' has", word);
    if (strcmp(word, "check") == 0)
        return r.n_words > 1 ? check_files(r.words + 1, r.n_words - 1) : check_usual();
    if (r.n_words == 1 && strcmp(word, "sample") == 0)
        return sample();
    if (r.n_words == 1 && strcmp(word, "show") == 0)
        return show(cli);
    near = word[0] ? text_nearest(word, names) : NULL;
    return cli_usage("use one of: berth config sample, check [FILE...], show%s%s%s",
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
