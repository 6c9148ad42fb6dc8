/* `berth config`: sample, check, show. The files are the user's own and are read here; the
 * table of settings is spec/config.h's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "spec/config.h"

#define CONFIG_MAX_BYTES (1024 * 1024)

static const struct page page = {
    .usage = "berth config sample | check [FILE...] | show",
    .about =
        "sample  print every setting with its help, range and default, to start a file with\n"
        "check   check files of settings for errors\n"
        "show    print what a daemon started now would use, from all files",
    .notes = "Files: /etc/berth/config.yaml, then $XDG_CONFIG_HOME/berth/config.yaml\n"
             "(~/.config/berth/config.yaml). A key in a later file takes precedence.",
};

#define PLACES 2

static void
find_places(char **out)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    out[0] = xstrdup("/etc/berth/config.yaml");
    out[1] = xdg && xdg[0] == '/' ? xasprintf("%s/berth/config.yaml", xdg)
                                  : xasprintf("%s/.config/berth/config.yaml", home ? home : "");
}

/* 0, or the exit status, with everything that is wrong said. */
static int
read_one(struct config *c, const char *path)
{
    auto_buf struct buf text = BUF_INIT, all = BUF_INIT;
    struct err e;

    if (file_read(path, CONFIG_MAX_BYTES, &text, &e) < 0)
        return cli_fail(&e);
    if (config_read(c, path, buf_str(&text), text.len, &all, &e) == 0)
        return 0;
    (void)file_write_all(STDERR_FILENO, all.data, all.len);
    return err_exit_status(e.code);
}

/* Reads what exists of the usual files; each error is said. */
static int
read_usual(struct config *c, bool say)
{
    char *places[PLACES];
    int status = 0;

    find_places(places);
    for (int i = 0; i < PLACES; i++) {
        if (access(places[i], F_OK) == 0) {
            int rc = read_one(c, places[i]);
            status = rc ? rc : status;
            if (rc == 0 && say)
                cli_say("%s is valid", places[i]);
        } else if (say) {
            cli_say("%s does not exist", places[i]);
        }
        free(places[i]);
    }
    return status;
}

static int
check_files(char **paths, int n)
{
    int status = 0;

    for (int i = 0; i < n; i++) {
        struct config c;
        int rc;

        config_init(&c);
        rc = read_one(&c, paths[i]);
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
    status = read_usual(&c, true);
    config_free(&c);
    return status;
}

static int
show(void)
{
    auto_buf struct buf out = BUF_INIT;
    struct config c;
    int status;

    config_init(&c);
    status = read_usual(&c, false);
    if (status == 0) {
        config_show(&c, &out);
        status = cli_put(&out);
    }
    config_free(&c);
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
    if (strcmp(word, "check") == 0)
        return r.n_words > 1 ? check_files(r.words + 1, r.n_words - 1) : check_usual();
    if (r.n_words == 1 && strcmp(word, "sample") == 0)
        return sample();
    if (r.n_words == 1 && strcmp(word, "show") == 0)
        return show();
    near = word[0] ? text_nearest(word, names) : NULL;
    return cli_usage("use one of: berth config sample, check [FILE...], show%s%s%s",
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
