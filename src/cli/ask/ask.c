/* One request to a running daemon; see ask.h. */
#include "cli/ask/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "wire/account.h"
#include "wire/client.h"

#define IDS_SHOWN 10

int
ask_daemon(const struct cli *cli, const char *method, json_t *params, json_t **result)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);

    *result = NULL;
    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    return client_call(c, method, params, result, &e) < 0 ? cli_fail(&e) : 0;
}

json_t *
ask_words(char *const *words, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(words[i]));
    return list;
}

json_t *
ask_select(char *const *words, int n)
{
    return json_pack("{s:o}", "select", ask_words(words, n));
}

json_t *
ask_select_or_all(const struct opt_reader *r, bool all, const char *nothing)
{
    static char everything[] = "all";
    char *all_word[] = {everything};

    if (all && r->n_words > 0)
        cli_usage("--all and a selection exclude each other");
    else if (!all && r->n_words == 0)
        cli_usage("%s", nothing);
    else
        return all ? ask_select(all_word, 1) : ask_select(r->words, r->n_words);
    return NULL;
}

void
ask_add_jobs(struct buf *out, const json_t *result, const char *key)
{
    char number[32];
    const json_t *ids = json_object_get(result, key), *tasks;
    size_t n = json_array_size(ids);
    size_t shown = n > IDS_SHOWN ? IDS_SHOWN - 1 : n;

    snprintf(number, sizeof number, "%s_tasks", key);
    tasks = json_object_get(result, number);
    buf_adds(out, n == 1 ? "job" : "jobs");
    for (size_t i = 0; i < shown; i++) {
        const char *glue = i == 0 ? " " : i == n - 1 ? " and " : ", ";

        snprintf(number, sizeof number, "%lld",
                 (long long)json_integer_value(json_array_get(ids, i)));
        const char *name = answer_str(tasks, number);
        buf_addf(out, "%s%s", glue, name[0] ? name : number);
    }
    if (shown < n)
        buf_addf(out, " and %zu more", n - shown);
}

int
ask_put_done(const json_t *result, const char *done)
{
    auto_buf struct buf line = BUF_INIT;

    buf_addf(&line, "%s ", done);
    ask_add_jobs(&line, result, "ids");
    buf_addc(&line, '\n');
    return cli_put(&line);
}

int
ask_change(const struct cli *cli, const char *method, json_t *params, const char *done)
{
    auto_json json_t *result = NULL;
    int status = ask_daemon(cli, method, params, &result);

    if (status != 0)
        return status;
    return cli->json ? cli_put_answer(result) : ask_put_done(result, done);
}

/* A removed account may still have jobs, under its number. */
void
ask_say_no_user(const char *name)
{
    auto_account struct account account = ACCOUNT_INIT;
    auto_buf struct buf shown = BUF_INIT;

    if (!name || strncmp(name, "uid:", 4) == 0 || account_by_name(name, &account) ||
        errno != ENOENT)
        return;
    text_add_safe(&shown, name, strlen(name), 60);
    cli_say("there is no user '%s' on this machine", buf_str(&shown));
}
