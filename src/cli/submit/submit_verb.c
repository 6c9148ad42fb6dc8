/* `berth submit`: queues one command. Its options are the attributes (spec/attr.h) that are
 * open to the command line, and a few about the submission itself; the first word that is not
 * an option begins the command. */
#include "cli/submit/submit_verb.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/ask/job_places.h"
#include "cli/ask/request_write.h"
#include "cli/ask/sim_match.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/interactive/interactive.h"
#include "cli/submit/submit_notes.h"
#include "cli/submit/submit_options.h"
#include "cli/submit/submit_plan.h"
#include "cli/submit/submit_script.h"
#include "cli/verbs/screens_verb.h"
#include "cli/verbs/wait_verb.h"
#include "spec/attr.h"
#include "sys/signals.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth submit [options] [--] COMMAND [ARG...]\n"
             "       berth submit [options] SCRIPT [ARG...]",
    .about =
        "Queue a command; a single argument with blanks is run by a shell. #BERTH and #SBATCH\n"
        "lines of a script are options; those on the command line take precedence.",
};

/* A single word with blanks is shell text; anything else is an argv. */
static int
take_command(struct request *req, char **words, int n)
{
    if (n == 0 || !words[0][strspn(words[0], " \t\n")])
        return cli_usage("submit what? For example: berth submit --vram 8G -- python train.py");
    for (int i = 0; i < n; i++) {
        if (!text_is_utf8(words[i], strlen(words[i]), NULL))
            return cli_usage(
                "argument %d of the command is not UTF-8; put the command into a script",
                i + 1);
    }
    if (n == 1 && strpbrk(words[0], " \t\n")) {
        req->command = xstrdup(words[0]);
        return 0;
    }
    req->argv = xcalloc((size_t)n + 1, sizeof *req->argv);
    for (int i = 0; i < n; i++)
        req->argv[i] = xstrdup(words[i]);
    return 0;
}

static void
write_params(const struct submission *s, struct buf *out)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_karray(&w, "jobs");
    jsonw_object(&w);
    jobreq_add_fields(&w, &s->req);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jobreq_add_context(&w, s->words.cwd, &s->words.env);
    jsonw_end_object(&w);
}

static long long
id_of(const json_t *result)
{
    return (long long)json_integer_value(json_array_get(json_object_get(result, "ids"), 0));
}

/* Prints the time limit as it was understood: a bare 90 means seconds here, minutes in
 * #SBATCH, and without a limit the daemon's default may apply. */
static void
add_words(struct buf *out, long long id, const struct request *req, int64_t limit_ms)
{
    char limit[24];

    long long tasks = (long long)task_set_count(&req->array);

    buf_addf(out, "job %lld submitted", id);
    if (tasks > 0)
        buf_addf(out, ", an array of %lld task%s", tasks, tasks == 1 ? "" : "s");
    if (tasks > 0 && req->array_max > 0)
        buf_addf(out, ", %d at once", req->array_max);
    if (limit_ms && req->limit_bare && limit_ms == req->limit_ms)
        buf_addf(out, ", time limit %g seconds", (double)limit_ms / 1000);
    else if (limit_ms)
        buf_addf(out, ", time limit %s", format_duration(limit_ms, limit));
    buf_addc(out, '\n');
}

static int
print_id(const struct cli *cli, const struct submission *s, json_t *result)
{
    auto_buf struct buf out = BUF_INIT;
    long long id = id_of(result);

    if (s->words.id) {
        *s->words.id = id;
        return 0;
    }
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        json_object_set_new(result, "id", json_integer(id));
        return cli_put_json(result);
    }
    if (s->words.parsable)
        buf_addf(&out, "%lld\n", id);
    else
        add_words(&out, id, &s->req, answer_int(result, "limit_ms", s->req.limit_ms));
    return cli_put(&out);
}

/* Prints how jobs ended, as the exit status alone does not show that a program was not found,
 * or that a limit was reached. */
static void
tell_ends(struct client *c, json_t *select)
{
    auto_json json_t *result = NULL;
    json_t *params = json_pack("{s:O, s:b}", "select", select, "all", 1);
    json_t *job;
    size_t i;

    if (client_call(c, "jobs", params, &result, NULL) < 0)
        return;
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        wait_tell_end(job);
    }
}

static int
wait_for(struct client *c, const json_t *result, struct err *e)
{
    auto_json json_t *ended = NULL;
    auto_json json_t *select = json_array();
    size_t i;
    json_t *id;

    json_array_foreach(json_object_get(result, "ids"), i, id)
        json_array_append_new(select, json_sprintf("%lld", (long long)json_integer_value(id)));
    client_set_patience(c, 0);
    if (client_call(c, "wait", json_pack("{s:O}", "select", select), &ended, e) < 0)
        return err_prefix(e, "the job may continue, but"), cli_fail(e);
    if (wait_highest(ended) != 0)
        tell_ends(c, select);
    return wait_highest(ended);
}

static int
check_program(const struct submission *s)
{
    return submit_check_program(&s->req, s->req.login || s->req.conda || s->req.env_setup ||
                                             s->req.chdir || s->req.env ||
                                             s->words.env.set.n > 0);
}

/* Keeps SLURM* variables that --export sets explicitly: otherwise, for a plain job submitted
 * from a job with Slurm's variables, the daemon drops them as the outer job's. */
static int
keep_said(struct submission *s, struct err *e)
{
    const struct env_list *set = &s->words.env.set;

    for (size_t i = 0; i < set->n && !s->req.slurm_env; i++)
        if (strncmp(set->at[i], "SLURM", 5) == 0 &&
            attr_set_at(&s->req, "env", set->at[i], ATTR_COMMAND_LINE, NULL, e) < 0)
            return -1;
    return 0;
}

/* Called before a daemon is started for it. With -D, a user can submit even from a folder that
 * is gone. */
static int
find_folder(struct submission *s)
{
    struct submit_words *words = &s->words;
    struct err e = {0};

    if (jobplaces_settle(&s->req, &e) < 0 || keep_said(s, &e) < 0)
        return cli_fail(&e);
    words->cwd = jobreq_current_folder(&e);
    if (s->req.slurm_env)
        env_for_slurm(&words->env, words->cwd);
    if (!words->cwd && s->req.chdir)
        words->cwd = xstrdup(s->req.chdir);
    if (!words->cwd)
        return cli_fail(&e);
    env_say_unsendable(&words->env);
    return 0;
}

/* Blocks signals before the job exists, so that none ends us and leaves the job behind:
 * interactive_follow handles signals that arrived, as they stay blocked. */
static void
block_signals(void)
{
    struct err ignored; /* interactive_follow reports it */
    int fd = signals_to_fd((const int[]){SIGINT, SIGTERM, SIGHUP, 0}, &ignored);

    if (fd >= 0)
        close(fd);
}

static int
submit(struct cli *cli, const struct submission *s)
{
    struct err e = {0};
    struct daemon_args args = {.sim = s->words.sim};
    auto_client struct client *c = sim_match_connect(cli, &args, &e);
    auto_buf struct buf params = BUF_INIT;
    auto_json json_t *result = NULL;
    int status;
    int waited;

    if (!c)
        return cli_fail(&e);
    if (!s->req.interactive) /* interactive jobs reconnect by themselves */
        connect_keep(cli, c, NULL);
    write_params(s, &params);
    if (s->words.ends)
        block_signals();
    if (client_call_text(c, "submit", params.data, params.len, &result, &e) < 0) {
        if (!s->words.refused)
            return cli_fail(&e);
        *s->words.refused = e;
        return err_exit_status(e.code);
    }
    if (answer_str(result, "note")[0])
        cli_say("%s", answer_str(result, "note"));
    if (s->req.interactive) {
        const struct interactive what = {.cli = cli,
                                         .args = &args,
                                         .job = id_of(result),
                                         .tail = -1,
                                         .left = s->words.left,
                                         .ends = s->words.ends};

        if (s->words.id)
            *s->words.id = what.job;
        return interactive_follow(&what, &c);
    }
    status = print_id(cli, s, result);
    if (cli_output_status() != 0)
        cli_say("job %lld was queued anyway", id_of(result));
    if (!s->words.wait)
        return status;
    waited = wait_for(c, result, &e);
    return waited ? waited : cli_output_status();
}

/* True if `--` precedes the word, which is one of argv. */
static bool
is_behind_dashes(char *const *argv, const char *word)
{
    int i = 1;

    while (argv[i] && argv[i] != word)
        i++;
    return argv[i] && strcmp(argv[i - 1], "--") == 0;
}

/* Parses the command line twice if it names a script: first to find the script, then again
 * after the script's options, so that the command line wins. */
static int
read_all(struct cli *cli, struct opt_reader *r, int argc, char **argv, struct submission *s)
{
    auto_free char **copy = xcalloc((size_t)argc + 1, sizeof *copy);
    auto_script struct submit_script script = {0};
    int status;

    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    request_begin(&s->req);
    status = submit_read_options(r, cli, &page, argc, copy, &s->req, &s->words);
    if (status != OPT_DONE)
        return status;
    bool is_script = r->n_words > 0 && submit_find_script(r->words[0], &script);
    submit_note_words(r->words, r->n_words,
                      r->n_words > 0 && is_behind_dashes(argv, r->words[0]), is_script);
    if (!is_script)
        return take_command(&s->req, r->words, r->n_words);
    bool ignore = s->words.ignore_unsupported;
    struct request over = s->req;
    submit_words_free(&s->words);
    s->words = (struct submit_words){0};
    request_begin(&s->req);
    status = submit_apply_script(&script, ignore, &over, &s->req, &s->words);
    request_free(&over);
    if (status != 0)
        return status;
    status = submit_read_options(r, cli, &page, argc, argv, &s->req, &s->words);
    if (status == OPT_DONE && s->req.slurm_env)
        submit_note_script(&script, &s->req);
    return status == OPT_DONE ? submit_script_command(&script, &s->req, r->words, r->n_words)
                              : status;
}

/* Refuses --json and --parsable, because standard output carries the job's bytes. */
static int
check_output(const struct cli *cli, struct submission *s)
{
    uint16_t rows, columns;

    if (!s->req.interactive)
        return 0;
    if (cli->json || s->words.parsable)
        return cli_usage("%s prints the job's number to where an interactive job's output "
                         "goes; omit it, or submit without --interactive",
                         cli->json ? "--json" : "--parsable");
    if (s->req.pty && interactive_window(&rows, &columns)) {
        s->req.rows = rows;
        s->req.columns = columns;
    }
    return 0;
}

int
submit_send(struct cli *cli, struct submission *s)
{
    struct err e = {0};
    int status = submit_finish_request(&s->req, &s->words);

    if (s->req.login)
        env_for_login(&s->words.env);
    if (status == 0 && s->req.screen && screens_need(&e) < 0)
        status = cli_fail(&e);
    if (status == 0)
        status = check_output(cli, s);
    if (status == 0)
        status = check_program(s);
    if (status == 0)
        status = find_folder(s);
    if (status == 0)
        status = s->words.dry_run ? submit_plan(cli, &s->req, &s->words) : submit(cli, s);
    return status;
}

void
submission_free(struct submission *s)
{
    submit_words_free(&s->words);
    request_free(&s->req);
}

int
cmd_submit(struct cli *cli, int argc, char **argv)
{
    struct submission s = {0};
    struct opt_reader r = {0};
    int status = read_all(cli, &r, argc, argv, &s);

    if (status == 0 && r.n_words > 0)
        status = submit_send(cli, &s);
    else if (status == OPT_EXIT)
        status = r.status;
    submission_free(&s);
    return status;
}
