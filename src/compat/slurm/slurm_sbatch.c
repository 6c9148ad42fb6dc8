/* sbatch: submits a script, or the command of --wrap. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_request.h"
#include "compat/slurm/slurm_script.h"
#include "compat/slurm/slurm_wait.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

static const char usage[] =
    "Usage: sbatch [OPTIONS...] script [args...]\n"
    "       sbatch [OPTIONS...] --wrap COMMAND\n"
    "\n"
    "Berth's queue under Slurm's name. The options of sbatch that one machine can honour are "
    "in\n"
    "berth-script(7); docs/coming-from-slurm.md has what differs. Without a script and "
    "without\n"
    "--wrap the script is read from standard input.\n"
    "\n"
    "  -J, -o, -e, -D, -t, -n, -c, --mem, -G, --gres, -a, -d, -b, -H, ...\n"
    "      --wrap=COMMAND  a script of this one line of shell\n"
    "      --parsable      print only the job's id\n"
    "  -W, --wait          wait until the job has ended; exit with its code\n"
    "      --test-only     submit nothing; say when the job would start\n"
    "  -Q, --quiet         print only errors, and not the job's id";

struct sbatch_call {
    struct slurm_request q;
    const char *wrap;
    bool parsable, test, wait;
};

static const struct slurm_option own[] = {
    {.option = {"parsable", 0, TAKES_NOTHING}, SLURM_INTO(struct sbatch_call, parsable)},
    {.option = {"test-only", 0, TAKES_NOTHING}, SLURM_INTO(struct sbatch_call, test)},
    {.option = {"wait", 'W', TAKES_NOTHING}, SLURM_INTO(struct sbatch_call, wait)},
    {.option = {"wrap", 0, TAKES_VALUE}, SLURM_INTO(struct sbatch_call, wrap)},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

static int
take_option(void *into, struct slurm_reader *r, int row)
{
    struct sbatch_call *s = into;

    slurm_take_option(&s->q, r, row - r->n_own);
    return 0;
}

/* The job's name without --job-name: the script's file name. */
static char *
default_name(const struct sbatch_call *s, const char *path)
{
    return s->wrap ? xstrdup("wrap") : xstrndup(path ? compat_name(path) : "sbatch", 128);
}

/* If path has no slash and is not a file here, look it up in PATH. NULL: use path as it is. */
static char *
find_script(const char *path)
{
    bool is_name = path && !strchr(path, '/') && access(path, R_OK) < 0;

    return is_name ? submit_find_in_path(path, R_OK) : NULL;
}

/* Record the script's full path and its arguments, unquoted as in Slurm. */
static void
say_submitted(struct sbatch_call *s, char *const *words, int n)
{
    const char *path = n > 0 && !s->wrap ? words[0] : NULL;
    auto_free char *found = find_script(path), *cwd = getcwd(NULL, 0);
    auto_buf struct buf text = BUF_INIT;

    if (found)
        path = found;
    if (path && !found && cwd && !strchr("./", path[0]))
        buf_addf(&text, "%s/", cwd);
    for (int i = 0; path && i < n; i++)
        buf_addf(&text, "%s%s", i ? " " : "", i ? words[i] : path);
    if (text_is_utf8(buf_str(&text), text.len, NULL))
        s->q.s.req.submitted_as = xstrdup(buf_str(&text));
}

/* Build the request, except for its command. Returns 0 or the exit status. */
static int
build(struct sbatch_call *s, const char *path, struct submit_script *script)
{
    struct request *r = &s->q.s.req;
    auto_free char *found = find_script(path);
    auto_buf struct buf text = BUF_INIT;
    int status = 0;

    if (s->wrap)
        slurm_wrap_script(s->wrap, &text);
    else
        status = slurm_read_script(found ? found : path, &text);
    if (status == 0)
        status = slurm_keep_script(&text, s->wrap ? "wrap" : path ? path : "stdin", script);
    if (status == 0)
        status = slurm_settle(&s->q, script, 255);
    if (status != 0)
        return status;
    if (!r->name)
        r->name = default_name(s, path);
    if (!r->log)
        r->log = xstrdup(r->array.n ? "slurm-%A_%a.out" : "slurm-%j.out");
    return 0;
}

/* --- dependencies that can no longer be met --- */

/* sbatch accepts a job whose dependency has already failed; Berth refuses it. Without this, a
 * script that submits a chain would fail half way. */

static json_t *
word_of(const struct dep *dep)
{
    return dep->task >= 0 ? json_sprintf("%u_%d", dep->job, dep->task)
                          : json_sprintf("%u", dep->job);
}

/* All selected tasks of an array count. */
static bool
has_failed(struct client *c, const struct dep *dep)
{
    auto_json json_t *select = json_pack("[o]", word_of(dep));
    const struct slurm_wish wish = {.select = select};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    bool all_ended = true, all_well = true;
    struct err e;

    if (dep->type == DEP_ANY || slurm_jobs_ask(c, &wish, &jobs, &e) < 0)
        return false;
    for (size_t i = 0; i < jobs.n; i++) {
        all_ended &= jobs.at[i].state->ended;
        all_well &= strcmp(jobs.at[i].state->name, "COMPLETED") == 0;
    }
    return jobs.n > 0 && all_ended && (dep->type == DEP_SUCCESS ? !all_well : all_well);
}

/* True if a job that r depends on has ended so that r can never start; reports it unless
 * quiet. */
static bool
cannot_start(const struct request *r, bool quiet)
{
    auto_client struct client *c = r->n_deps ? slurm_connect("sbatch") : NULL;

    for (int i = 0; c && i < r->n_deps; i++) {
        if (!has_failed(c, &r->deps[i]))
            continue;
        if (!quiet)
            cli_say("job %u has ended %s, so this job can never start and is cancelled",
                    r->deps[i].job,
                    r->deps[i].type == DEP_SUCCESS ? "without success" : "with success");
        return true;
    }
    return false;
}

/* True if the daemon does not know the job. */
static bool
is_unknown(struct client *c, const struct dep *dep)
{
    auto_json json_t *select = json_pack("[o]", word_of(dep));
    const struct slurm_wish wish = {.select = select};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e;

    return slurm_jobs_ask(c, &wish, &jobs, &e) < 0 && e.code == ERR_NO_JOB;
}

/* Drop dependencies on unknown jobs, with a note: Slurm treats jobs it has purged as
 * successful. True if there were any. */
static bool
drop_unknown(struct request *r, bool quiet)
{
    auto_client struct client *c = r->n_deps ? slurm_connect("sbatch") : NULL;
    int n = 0, before = r->n_deps;

    if (!c)
        return false;
    for (int i = 0; i < before; i++) {
        if (!is_unknown(c, &r->deps[i])) {
            r->deps[n++] = r->deps[i];
        } else if (!quiet) {
            cli_say("job %u is not known, so this job does not wait for it", r->deps[i].job);
        }
    }
    r->n_deps = n;
    return n < before;
}

/* --- submission --- */

/* --test-only. */
static int
say_plan(struct sbatch_call *s, struct cli *cli)
{
    const struct request *r = &s->q.s.req;
    int64_t now_us = clock_wall_us(), start_us;
    auto_json json_t *line = NULL;
    char when[SLURM_TIME];

    (void)drop_unknown(&s->q.s.req, s->q.quiet); /* like send_job after a refusal */
    s->q.s.words.dry_run = true;
    s->q.s.words.plan = &line;
    if (submit_send(cli, &s->q.s) != 0)
        return 1;
    if (strcmp(answer_str(line, "state"), "INFEASIBLE") == 0)
        return slurm_fail(1, "allocation failure: %s", answer_str(line, "text"));
    start_us = answer_time_us(line, "expected_start");
    if (start_us == 0 && strcmp(answer_str(line, "state"), "STARTING") == 0)
        start_us = now_us;
    cli_say("Job to start at %s using %d processors on nodes %s in partition %s",
            start_us ? slurm_time(start_us, when) : "an unknown time",
            r->demand.cpus > 0 ? r->demand.cpus : 1, slurm_node(), SLURM_PARTITION);
    return 0;
}

static int
send_again(struct sbatch_call *s, struct cli *cli)
{
    free(s->q.s.words.cwd);
    s->q.s.words.cwd = NULL;
    return submit_send(cli, &s->q.s);
}

/* A job that can never start is queued, as in Slurm, but held, without its dependencies, and
 * then cancelled. */
static int
queue_lost(struct sbatch_call *s, struct cli *cli)
{
    s->q.s.req.hold = true;
    s->q.s.req.n_deps = 0; /* ids only, so nothing to free */
    s->q.s.words.refused = NULL;
    return send_again(s, cli);
}

static void
cancel(int64_t id)
{
    auto_client struct client *c = slurm_connect("sbatch");
    json_t *params = json_pack("{s:[o]}", "select", json_sprintf("%lld", (long long)id));
    struct err e = {0};

    if (!c)
        json_decref(params);
    else if (client_call(c, "cancel", params, NULL, &e) < 0)
        cli_say("job %lld is held, as it could not be cancelled: %s", (long long)id, e.text);
}

/* Returns 0 with the job's number in *id, or the exit status. */
static int
send_job(struct sbatch_call *s, struct cli *cli, int64_t *id)
{
    struct err refused = {0};
    int status;

    s->q.s.words.id = id;
    s->q.s.words.refused = &refused;
    status = submit_send(cli, &s->q.s);
    if (status != 0 && refused.code == ERR_REFUSED && drop_unknown(&s->q.s.req, s->q.quiet)) {
        refused = (struct err){0};
        status = send_again(s, cli);
    }
    if (status != 0 && refused.code == ERR_REFUSED && cannot_start(&s->q.s.req, s->q.quiet)) {
        status = queue_lost(s, cli);
        if (status == 0)
            cancel(*id);
    } else if (refused.code != ERR_NONE) {
        return slurm_fail(1, "%s", refused.text);
    }
    return status ? 1 : 0;
}

static int
queue(struct sbatch_call *s, struct cli *cli)
{
    auto_buf struct buf out = BUF_INIT;
    int64_t id = 0;
    int status = send_job(s, cli, &id);

    if (status != 0)
        return status;
    buf_addf(&out, s->parsable ? "%lld\n" : "Submitted batch job %lld\n", (long long)id);
    if (!s->q.quiet) /* even with --parsable, as in Slurm */
        status = cli_put(&out);
    slurm_tidy_scripts();
    return s->wait ? slurm_wait(id) : status;
}

int
compat_sbatch(int argc, char **argv)
{
    struct cli cli = slurm_cli();
    struct slurm_reader r = {
        .name = "sbatch", .usage = usage, .own = own, .jobs = true, .wrong = 255};
    struct sbatch_call s = {0};
    auto_script struct submit_script script = {0};
    const char *wait = getenv("SBATCH_WAIT");
    int status;

    slurm_request_begin(&s.q);
    slurm_take_variables(&s.q, VARIABLES_SBATCH);
    s.wait = wait && slurm_is_yes(wait);
    bool more = slurm_read(&r, argc, argv, &s, take_option, &status);
    if (more && s.wrap && r.n_words > 0)
        status = slurm_fail(1, "Script arguments not permitted with --wrap option");
    else if (more)
        status = build(&s, r.n_words > 0 ? r.words[0] : NULL, &script);
    if (more && status == 0)
        status = submit_script_command(&script, &s.q.s.req, r.words, r.n_words) ? 1 : 0;
    if (more && status == 0)
        say_submitted(&s, r.words, r.n_words);
    if (more && status == 0 && s.test)
        status = say_plan(&s, &cli);
    else if (more && status == 0)
        status = queue(&s, &cli);
    slurm_request_free(&s.q);
    return status;
}
