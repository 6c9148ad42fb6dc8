/* The environment sent with a submission; see submit_env.h. The caller's own variables have
 * the lowest precedence: --env replaces them. */
#include "cli/ask/submit_env.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "spec/value.h"
#include "wire/account.h"

#define PATH_OF_USERS "/usr/local/bin:/usr/bin:/bin"
#define PATH_OF_ROOT  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void
add_to(struct env_list *list, const char *text)
{
    list->at = xrealloc(list->at, (list->n + 2) * sizeof *list->at);
    list->at[list->n++] = xstrdup(text);
    list->at[list->n] = NULL;
}

static void
free_list(struct env_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct env_list){NULL, 0};
}

void
env_free(struct env_choice *c)
{
    free_list(&c->set);
    free_list(&c->names);
    free_list(&c->slurm_set);
    free(c->for_steps);
    c->for_steps = NULL;
}

static bool
same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strcspn(b, "=") == n && memcmp(a, b, n) == 0;
}

static bool
has_name(const struct env_list *list, const char *entry)
{
    for (size_t i = 0; i < list->n; i++)
        if (same_name(list->at[i], entry))
            return true;
    return false;
}

static int
set_in(struct env_list *list, const char *entry, struct err *e)
{
    if (value_check_env(entry, e) < 0)
        return -1;
    for (size_t i = 0; i < list->n; i++) {
        if (!same_name(list->at[i], entry))
            continue;
        free(list->at[i]);
        list->at[i] = xstrdup(entry);
        return 0;
    }
    add_to(list, entry);
    return 0;
}

int
env_set(struct env_choice *c, const char *entry, struct err *e)
{
    return set_in(&c->set, entry, e);
}

int
env_set_slurm(struct env_choice *c, const char *entry, struct err *e)
{
    return set_in(&c->slurm_set, entry, e);
}

/* Like strsep at commas, except for commas between quotes, which, with the quotes, belong to a
 * value. */
static char *
next_piece(char **rest)
{
    char *piece = *rest, *p = piece, quote = '\0';

    for (; p && *p && (quote || *p != ','); p++) {
        if (quote ? *p == quote : strchr("\"'", *p) != NULL)
            quote = quote ? '\0' : *p;
    }
    *rest = p && *p ? p + 1 : NULL;
    if (p)
        *p = '\0';
    return piece;
}

/* Applies one comma-separated piece of --export. */
static int
export_one(struct env_choice *c, const char *piece, bool *all, struct err *e)
{
    if (strcasecmp(piece, "ALL") == 0)
        *all = true;
    else if (strchr(piece, '='))
        return env_set(c, piece, e);
    else if (!*piece)
        return err_set(e, ERR_USAGE, "write ALL, NONE or variable names: PATH,FOO=1");
    else if (strcasecmp(piece, "NONE") != 0 && strcasecmp(piece, "NIL") != 0)
        add_to(&c->names, piece);
    return 0;
}

int
env_export(struct env_choice *c, const char *text, struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *piece;
    bool all = false;

    free_list(&c->names);
    while ((piece = next_piece(&rest)))
        if (export_one(c, piece, &all, e) < 0)
            return -1;
    c->only = !all;
    free(c->for_steps);
    c->for_steps = strcasecmp(text, "ALL") == 0 ? NULL : xstrdup(text);
    return 0;
}

static bool
is_ours(const char *entry)
{
    auto_free char *name = xstrndup(entry, strcspn(entry, "="));

    return getenv(name) != NULL;
}

void
env_prefer_own(struct env_choice *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->set.n; i++) {
        char *entry = c->set.at[i];

        if ((!c->only || has_name(&c->names, entry)) && is_ours(entry))
            free(entry);
        else
            c->set.at[kept++] = entry;
    }
    c->set.n = kept;
    if (c->set.at)
        c->set.at[kept] = NULL;
    free(c->for_steps);
    c->for_steps = NULL;
}

void
env_for_login(struct env_choice *c)
{
    c->only = c->login = true;
}

static void
set_unless_said(struct env_choice *c, const char *entry)
{
    if (!has_name(&c->set, entry))
        add_to(&c->set, entry);
}

void
env_for_slurm(struct env_choice *c, const char *folder)
{
    auto_free char *submitted = folder ? xasprintf("SLURM_SUBMIT_DIR=%s", folder) : NULL;

    auto_free char *steps =
        c->for_steps ? xasprintf("SLURM_EXPORT_ENV=%s", c->for_steps) : NULL;

    c->slurm = true;
    if (submitted)
        set_unless_said(c, submitted);
    if (steps)
        set_unless_said(c, steps);
    for (size_t i = 0; i < c->slurm_set.n; i++)
        set_unless_said(c, c->slurm_set.at[i]);
}

/* True if this variable of our environment is to be sent. */
static bool
is_chosen(const struct env_choice *c, const char *entry)
{
    static const char *const always[] = {"HOME", "LOGNAME", "PATH", "SHELL", "USER"};
    static const char *const at_login[] = {"TERM"};
    const char *const *these = c && c->login ? at_login : always;
    size_t n = c && c->login ? 1 : sizeof always / sizeof always[0];

    if (!strchr(entry, '='))
        return false;
    if (!c)
        return true;
    if (has_name(&c->set, entry) || (c->slurm && strncmp(entry, "SLURM", 5) == 0))
        return false;
    for (size_t i = 0; c->only && i < n; i++)
        if (same_name(these[i], entry))
            return true;
    return !c->only || has_name(&c->names, entry);
}

void
env_say_unsendable(const struct env_choice *c)
{
    for (char **entry = environ; *entry; entry++) {
        auto_buf struct buf name = BUF_INIT;

        if (!is_chosen(c, *entry) || text_is_utf8(*entry, strlen(*entry), NULL))
            continue;
        text_add_safe(&name, *entry, strcspn(*entry, "="), 80);
        cli_say("%s is not UTF-8 and is not passed on", buf_str(&name));
    }
}

static void
add_at_login(struct jsonw *w, const struct env_choice *c, const char *name, const char *value)
{
    auto_free char *entry = xasprintf("%s=%s", name, value ? value : "");

    if (!has_name(&c->set, entry) && !has_name(&c->names, entry) &&
        text_is_utf8(entry, strlen(entry), NULL))
        jsonw_str(w, entry);
}

/* The environment that login(1) sets before it reads the first profile. The machine's daemon
 * looks up the account again when the job starts. */
static void
add_login(struct jsonw *w, const struct env_choice *c)
{
    auto_account struct account account;
    bool is_known = account_by_uid(getuid(), &account);

    add_at_login(w, c, "PATH", getuid() == 0 ? PATH_OF_ROOT : PATH_OF_USERS);
    if (!is_known)
        return;
    add_at_login(w, c, "HOME", account.home);
    add_at_login(w, c, "LOGNAME", account.name);
    add_at_login(w, c, "SHELL", account.shell[0] ? account.shell : "/bin/sh");
    add_at_login(w, c, "USER", account.name);
}

void
env_add(struct jsonw *w, const struct env_choice *c)
{
    jsonw_karray(w, "env");
    for (char **entry = environ; *entry; entry++) {
        if (is_chosen(c, *entry) && text_is_utf8(*entry, strlen(*entry), NULL))
            jsonw_str(w, *entry);
    }
    if (c && c->login)
        add_login(w, c);
    for (size_t i = 0; c && i < c->set.n; i++)
        jsonw_str(w, c->set.at[i]);
    jsonw_end_array(w);
}
