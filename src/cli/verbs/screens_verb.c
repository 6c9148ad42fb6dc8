/* `berth screens`: the screen sessions of running jobs, and how to attach to them. The daemon
 * gets them from the jobs' supervisors; screen itself can list only one user's sessions. */
#include "cli/verbs/screens_verb.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/table.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth screens",
    .about = "List running jobs that were submitted with --screen: session, job, user, GPUs, "
             "and the\n"
             "command that shows it. In the session Ctrl-a d detaches; the job continues.",
};

static const struct column columns[] = {
    {"SESSION", false, false}, {"JOB", true, false},     {"USER", false, false},
    {"GPU", false, false},     {"ATTACH", false, false},
};

int
screens_need(struct err *e)
{
    const char *at = getenv("PATH");
    for (; at && *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        auto_free char *path = xasprintf("%.*s/screen", (int)n, at);
        if (n > 0 && access(path, X_OK) == 0)
            return 0;
        at += n;
    }
    return err_set(e, ERR_REFUSED,
                   "--screen needs GNU screen, and PATH has no 'screen'; install the "
                   "package 'screen', or submit with --interactive or --pty");
}

/* A user can attach only to own sessions: screen requires a terminal of its owner. */
static void
add_way_in(struct buf *out, const json_t *job)
{
    if (answer_int(job, "uid", -1) != (int64_t)geteuid())
        buf_addf(out, "as %s: ", answer_str(job, "user"));
    buf_addf(out, "screen -r %s", answer_str(job, "screen_session"));
}

static void
add_row(struct table *t, const json_t *job)
{
    auto_buf struct buf id = BUF_INIT, gpus = BUF_INIT, way = BUF_INIT;
    const char *session = answer_str(job, "screen_session"), *dot = strchr(session, '.');

    answer_add_id(&id, job);
    answer_add_gpus(&gpus, json_object_get(job, "gpus"));
    add_way_in(&way, job);
    table_cell(t, STYLE_NONE, dot ? dot + 1 : session);
    table_cell(t, STYLE_NONE, buf_str(&id));
    table_cell(t, STYLE_NONE, answer_str(job, "user"));
    table_cell(t, STYLE_NONE, buf_str(&gpus));
    table_cell(t, STYLE_NONE, buf_str(&way));
}

/* {"version":1,"screens":[{"session","job","user","gpus","attach"}]} */
static int
print_json(const json_t *jobs)
{
    auto_json json_t *all = json_pack("{s:i,s:[]}", "version", 1, "screens");
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        auto_buf struct buf way = BUF_INIT;
        add_way_in(&way, job);
        json_array_append_new(json_object_get(all, "screens"),
                              json_pack("{s:O,s:O,s:O,s:O,s:s}", "session",
                                        json_object_get(job, "screen_session"), "job",
                                        json_object_get(job, "id"), "user",
                                        json_object_get(job, "user"), "gpus",
                                        json_object_get(job, "gpus"), "attach", buf_str(&way)));
    }
    return cli_put_json(all);
}

static int
print_table(const json_t *jobs)
{
    struct term term = term_of_stdout();
    auto_table struct table *t = table_new(columns, (int)(sizeof columns / sizeof columns[0]));
    auto_buf struct buf out = BUF_INIT;
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job) add_row(t, job);
    if (table_rows(t) == 0) {
        cli_say("no screen sessions; 'berth submit --screen' starts one");
        return 0;
    }
    table_print(t, &term, &out);
    return cli_put(&out);
}

/* Having no running jobs is a valid result, not an error. */
static int
ask_running(const struct cli *cli, json_t **result, struct err *e)
{
    auto_client struct client *c = connect_kept(cli, e);

    if (!c)
        return -1;
    if (client_call(c, "jobs", json_pack("{s:[s]}", "select", "state:running"), result, e) == 0)
        return 0;
    if (e->code != ERR_NO_JOB)
        return -1;
    *result = json_pack("{s:[]}", "jobs");
    return 0;
}

int
cmd_screens(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    struct err e = {0};
    size_t i;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        ;
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth screens' takes no arguments; it lists every session");
    if (ask_running(cli, &result, &e) < 0)
        return cli_fail(&e);
    json_t *jobs = json_object_get(result, "jobs");
    for (i = json_array_size(jobs); i-- > 0;)
        if (!answer_str(json_array_get(jobs, i), "screen_session")[0])
            json_array_remove(jobs, i);
    return cli->json ? print_json(jobs) : print_table(jobs);
}
