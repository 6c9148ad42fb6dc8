/* `berth export --to slurm`: options, files, and a summary of features without a counterpart
 * in Slurm. The jobs stay in Berth's queue until they are cancelled; --hold keeps them from
 * starting. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/ask/connect.h"
#include "cli/ask/moment.h"
#include "cli/common/cli.h"
#include "cli/common/config_files.h"
#include "cli/common/opt.h"
#include "cli/export/export_priv.h"
#include "spec/config.h"
#include "wire/client.h"

enum {
    OPT_TO,
    OPT_OUTPUT,
    OPT_ALL,
    OPT_HOLD,
    OPT_CLUSTER,
    OPT_PARTITION,
    OPT_ACCOUNT,
    OPT_QOS,
    OPT_SINCE,
    OPT_CONFIG
};

static const struct opt options[] = {
    {"to", 0, "SCHEDULER", "for which scheduler: slurm"},
    {"output", 'o', "DIR", "write into this folder (default: slurm-export)"},
    {"all", 'a', NULL, "jobs of all users (the default for root)"},
    {"hold", 0, NULL, "hold the jobs here first, so that none starts in both queues"},
    {"cluster", 0, "NAME", "ClusterName in slurm.conf (default: cluster)"},
    {"partition", 0, "NAME", "partition of the jobs (default: Slurm's)"},
    {"account", 0, "NAME", "account of the jobs (default: Slurm's)"},
    {"qos", 0, "NAME", "QOS of the jobs (default: Slurm's)"},
    {"since", 0, "WHEN", "history since then: 30d, 2026-11-20 (default: all)"},
    {"config", 0, "FILE", "settings that the daemon was given besides the usual files"},
    {0},
};

static const struct page page = {
    .usage = "berth export --to slurm [-o DIR] [options]",
    .about =
        "Write what Slurm needs to take over: slurm.conf, gres.conf, accounts and limits,\n"
        "the pending jobs as scripts with a program that submits them, and the history.",
    .options = options,
    .notes = "Running jobs stay here. The exported ones stay too, until they are cancelled:\n"
             "  berth export --to slurm --hold -o DIR && DIR/submit-all\n"
             "  berth cancel $(DIR/submit-all --accepted)",
    .no_json = "it writes files; 'berth queue --json' and 'berth history --json' have the jobs",
};

struct wish {
    const char *folder, *config; /* config: an additional file of settings, or NULL */
    int64_t since_us;
    struct export_machine machine;
    struct sbatch_site site;
};

/* --- shared data --- */

static void
data_free(struct export_data *x)
{
    for (size_t i = 0; i < x->n; i++) {
        request_free(&x->jobs[i].req);
        free(x->jobs[i].user);
    }
    for (size_t i = 0; i < x->n_cards; i++) {
        free(x->cards[i].model);
        free(x->cards[i].name);
    }
    free(x->listed);
    free(x->jobs);
    free(x->cards);
    text_list_free(x->users);
    for (size_t i = 0; i < x->n_notes; i++)
        free(x->notes[i].text);
    free(x->notes);
}

static void
append(char ***list, size_t *n, const char *text)
{
    *list = xrealloc(*list, (*n + 2) * sizeof **list);
    (*list)[(*n)++] = xstrdup(text);
    (*list)[*n] = NULL;
}

void
export_add_user(struct export_data *x, const char *name)
{
    for (size_t i = 0; i < x->n_users; i++)
        if (strcmp(x->users[i], name) == 0)
            return;
    append(&x->users, &x->n_users, name);
}

void
export_note(struct export_data *x, const char *text)
{
    for (size_t i = 0; i < x->n_notes; i++) {
        if (strcmp(x->notes[i].text, text) == 0) {
            x->notes[i].jobs++;
            return;
        }
    }
    x->notes = xgrow(x->notes, x->n_notes, &x->notes_cap, sizeof *x->notes);
    x->notes[x->n_notes++] = (struct export_loss){xstrdup(text), 1};
}

/* --- files --- */

/* Makes a folder that only this user can read, as commands and environments are private. */
static int
make_folder(const char *path, int *dir, struct err *e)
{
    auto_dir DIR *list = NULL;
    const struct dirent *entry;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s", path);
    list = opendir(path);
    if (!list)
        return err_errno(e, ERR_FAILED, errno, "cannot write into %s", path);
    while ((entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return err_set(e, ERR_USAGE, "%s is not empty; choose a new folder with -o", path);
    *dir = dup(dirfd(list));
    if (*dir < 0 || mkdirat(*dir, "scripts", 0700) < 0 ||
        mkdirat(*dir, "environments", 0700) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write into %s", path);
    return 0;
}

/* Removes the folder again if it is empty. */
static void
drop_folder(const char *path, int dir)
{
    if (dir < 0)
        return;
    unlinkat(dir, "scripts", AT_REMOVEDIR);
    unlinkat(dir, "environments", AT_REMOVEDIR);
    rmdir(path);
}

static int
write_file(int dir, const char *name, const struct buf *text, mode_t mode, struct err *e)
{
    return file_write_atomic_at(dir, name, buf_str(text), text->len, mode, false, e);
}

/* Jobs submitted from the same shell share an environment, which is written once. */
static int
write_environments(struct client *c, const struct export_data *x, int dir, struct err *e)
{
    for (size_t i = 0; i < x->n; i++) {
        auto_free char *name =
            xasprintf("environments/%lld", (long long)x->jobs[i].environment);
        auto_buf struct buf text = BUF_INIT;

        if (x->jobs[i].environment == 0 || faccessat(dir, name, F_OK, 0) == 0)
            continue;
        if (export_fetch_environment(c, x->jobs[i].id, &text, e) < 0 ||
            write_file(dir, name, &text, 0600, e) < 0)
            return -1;
    }
    return 0;
}

static int
write_scripts(struct export_data *x, const struct sbatch_site *site, int dir, struct err *e)
{
    for (size_t i = 0; i < x->n; i++) {
        auto_free char *name = xasprintf("scripts/%u.sh", x->jobs[i].id);
        auto_buf struct buf text = BUF_INIT;

        export_script(x, &x->jobs[i], site, &text);
        if (write_file(dir, name, &text, 0700, e) < 0)
            return -1;
    }
    return 0;
}

/* Writes the list of jobs that --hold holds, for `berth release` if they are to run here after
 * all. */
static int
write_held(const struct export_data *x, int dir, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    for (size_t i = 0; i < x->n_listed; i++)
        if (!x->listed[i].held)
            buf_addf(&text, "%u\n", x->listed[i].id);
    return x->hold_here ? write_file(dir, "held", &text, 0600, e) : 0;
}

static int
write_settings(const struct export_data *x, const struct wish *w, const struct config *config,
               int dir, struct err *e)
{
    auto_buf struct buf slurm = BUF_INIT, gres = BUF_INIT, accounts = BUF_INIT;

    export_slurm_conf(x, &w->machine, config, &slurm);
    export_gres_conf(x, &w->machine, &gres);
    export_accounts(x, config, &accounts);
    if (write_file(dir, "slurm.conf", &slurm, 0644, e) < 0 ||
        write_file(dir, "gres.conf", &gres, 0644, e) < 0)
        return -1;
    return write_file(dir, "accounts.sh", &accounts, 0700, e);
}

/* --- the whole --- */

static void
fill_site(const struct export_data *x, const struct config *config, struct wish *w)
{
    w->site.kill_wait_ms = config->grace_ms;
    w->site.shard_mib = w->machine.shard_mib;
    w->site.type_mib = w->machine.type_mib;
    w->site.gpu_types = (const char *const *)w->machine.types;
    w->site.top_priority = x->n ? x->jobs[0].req.priority : 0;
    for (size_t i = 0; i < x->n; i++)
        if (x->jobs[i].req.priority > w->site.top_priority)
            w->site.top_priority = x->jobs[i].req.priority;
    for (size_t i = 0; i < x->n_cards; i++)
        if (i == 0 || x->cards[i].mib < w->site.gpu_mib)
            w->site.gpu_mib = (int32_t)x->cards[i].mib;
}

static int
make_key(struct export_data *x, struct err *e)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return err_errno(e, ERR_FAILED, errno, "cannot make a random key");
    snprintf(x->key, sizeof x->key, "%016llx", (unsigned long long)number);
    return 0;
}

static int
write_all(struct client *c, struct export_data *x, struct wish *w, const struct config *config,
          int dir, struct err *e)
{
    auto_buf struct buf history = BUF_INIT, submit = BUF_INIT;

    if (make_key(x, e) < 0 || export_list(c, x, e) < 0 || write_held(x, dir, e) < 0 ||
        export_fetch(c, x, e) < 0 || export_history(c, x, w->since_us, &history, e) < 0 ||
        export_look_at_machine(x, &w->machine, e) < 0)
        return -1;
    fill_site(x, config, w);
    export_put_in_order(x);
    if (write_environments(c, x, dir, e) < 0 || write_scripts(x, &w->site, dir, e) < 0 ||
        write_settings(x, w, config, dir, e) < 0 ||
        write_file(dir, "history.txt", &history, 0600, e) < 0)
        return -1;
    export_submit_all(x, &submit);
    return write_file(dir, "submit-all", &submit, 0700, e);
}

static int
export_all(struct client *c, struct export_data *x, struct wish *w, const struct config *config,
           struct err *e)
{
    auto_close int dir = -1;

    if (make_folder(w->folder, &dir, e) < 0)
        return -1;
    if (write_all(c, x, w, config, dir, e) == 0)
        return 0;
    drop_folder(w->folder, dir);
    return -1;
}

static void
say_what_was_done(const struct export_data *x, const struct wish *w)
{
    cli_say("%zu job%s in %s; submit-all submits them", x->n, x->n == 1 ? "" : "s", w->folder);
    if (x->n_active)
        cli_say("%zu job%s that started here %s not exported", x->n_active,
                x->n_active == 1 ? "" : "s", x->n_active == 1 ? "is" : "are");
    for (size_t i = 0; i < x->n_notes; i++)
        cli_say("%d job%s: %s", x->notes[i].jobs, x->notes[i].jobs == 1 ? "" : "s",
                x->notes[i].text);
}

static int
take_option(const struct opt_reader *r, int opt, struct wish *w, struct export_data *x,
            const char **to, struct err *e)
{
    switch (opt) {
    case OPT_TO:
        *to = r->value;
        return 0;
    case OPT_OUTPUT:
        w->folder = r->value;
        return 0;
    case OPT_ALL:
        x->all_users = true;
        return 0;
    case OPT_HOLD:
        x->hold_here = true;
        return 0;
    case OPT_CLUSTER:
        w->machine.cluster = r->value;
        return 0;
    case OPT_PARTITION:
        w->site.partition = r->value;
        return 0;
    case OPT_ACCOUNT:
        w->site.account = r->value;
        return 0;
    case OPT_QOS:
        w->site.qos = r->value;
        return 0;
    case OPT_CONFIG:
        w->config = r->value;
        return 0;
    default:
        return moment_read(r->value, &w->since_us, e);
    }
}

/* True if it is valid as a name in slurm.conf. */
static bool
is_plain(const char *name)
{
    return name[0] &&
           !name[strspn(name,
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
}

/* -1: continue; else the exit status. */
static int
read_options(struct opt_reader *r, struct wish *w, struct export_data *x)
{
    const char *to = NULL;
    struct err e = {0};
    int opt;

    while ((opt = opt_next(r)) >= 0)
        if (take_option(r, opt, w, x, &to, &e) < 0)
            return cli_usage("--%s: %s", options[opt].name, e.text);
    if (opt == OPT_EXIT)
        return r->status;
    if (r->n_words)
        return cli_usage("unexpected argument '%s'", r->words[0]);
    if (!to)
        return cli_usage("say for which scheduler: --to slurm");
    if (strcmp(to, "slurm") != 0)
        return cli_usage("--to: '%s' is not supported; use slurm", to);
    if (!is_plain(w->machine.cluster))
        return cli_usage("--cluster: '%s' is not a name of letters, digits, - and _",
                         w->machine.cluster);
    return -1;
}

static int
run(struct cli *cli, struct export_data *x, struct wish *w)
{
    struct err e = {0};
    struct config config;
    int status;

    config_init(&config);
    status = config_files_read(&config, false);
    if (status == 0 && w->config)
        status = config_files_read_one(&config, w->config);
    if (status == 0) {
        auto_client struct client *c = connect_daemon(cli, &e);

        if (!c || export_all(c, x, w, &config, &e) < 0)
            status = cli_fail(&e);
        else
            say_what_was_done(x, w);
    }
    config_free(&config);
    return status;
}

int
cmd_export(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct export_data x = {.all_users = getuid() == 0};
    struct wish w = {.folder = "slurm-export", .machine.cluster = "cluster"};
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    status = read_options(&r, &w, &x);
    if (status < 0)
        status = run(cli, &x, &w);
    export_machine_free(&w.machine);
    data_free(&x);
    return status;
}
