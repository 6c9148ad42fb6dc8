/* srun and salloc. Inside a job, srun starts tasks (berth-srun-step). Outside, it submits a
 * job and attaches to it: the job's output appears here, and its exit status becomes ours.
 * salloc does the same with a shell or a command. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/submit_env.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm_request.h"
#include "compat/slurm/slurm_words.h"
#include "wire/places.h"

static const char srun_usage[] =
    "Usage: srun [OPTIONS...] program [args...]\n"
    "\n"
    "In a job of Berth's: starts the program in it, once, or -n times. Elsewhere: a job of "
    "its\n"
    "own, whose output comes here and whose exit code is that of srun.\n"
    "\n"
    "  -n, -c, --gres, -G, -t, --mem, -J, -D, --export, ... as with sbatch\n"
    "      --pty         on a terminal\n"
    "  -o, -e, -i FILE   files of the tasks; %t is the task's number";

static const char salloc_usage[] =
    "Usage: salloc [OPTIONS...] [command [args...]]\n"
    "\n"
    "A shell, or a command, in a job of its own, as soon as there is room for it.\n"
    "\n"
    "  -n, -c, --gres, -G, -t, --mem, -J, -D, ... as with sbatch";

struct call {
    struct slurm_request q;
    char **tasks; /* owned strings: options for berth-srun-step */
    size_t n_tasks, cap;
    bool pty, label;
};

enum {
    SRUN_OUTPUT,
    SRUN_ERROR,
    SRUN_INPUT,
    SRUN_JOBID,
    SRUN_KILL,
    SRUN_MULTI,
};
static const struct slurm_option srun_own[] = {
    [SRUN_OUTPUT] = {.option = {"output", 'o', TAKES_VALUE}},
    [SRUN_ERROR] = {.option = {"error", 'e', TAKES_VALUE}},
    [SRUN_INPUT] = {.option = {"input", 'i', TAKES_VALUE}},
    [SRUN_JOBID] = {.option = {"jobid", 0, TAKES_VALUE}},
    [SRUN_KILL] = {.option = {"kill-on-bad-exit", 'K', TAKES_MAYBE}},
    [SRUN_MULTI] = {.option = {"multi-prog", 0, TAKES_NOTHING}},
    {.option = {"pty", 0, TAKES_NOTHING}, SLURM_INTO(struct call, pty)},
    {.option = {"label", 'l', TAKES_NOTHING}, SLURM_INTO(struct call, label)},
    /* Options for layout and binding of tasks, which are left to the kernel here. */
    {.option = {"unbuffered", 'u', TAKES_NOTHING}},
    {.option = {"mpi", 0, TAKES_VALUE}},
    {.option = {"cpu-bind", 0, TAKES_VALUE}},
    {.option = {"overlap", 0, TAKES_NOTHING}},
    {.option = {"exact", 0, TAKES_NOTHING}},
    {.option = {"immediate", 'I', TAKES_MAYBE}},
    {.option = {"wait", 'W', TAKES_VALUE}},
    {.option = {"exclusive", 0, TAKES_MAYBE}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

enum { SALLOC_NO_SHELL };
static const struct slurm_option salloc_own[] = {
    [SALLOC_NO_SHELL] = {.option = {"no-shell", 0, TAKES_NOTHING}},
    {.option = {"bell", 0, TAKES_NOTHING}},
    {.option = {"no-bell", 0, TAKES_NOTHING}},
    {.option = {"immediate", 'I', TAKES_MAYBE}},
    {.option = {"kill-command", 'K', TAKES_MAYBE}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* Add an option such as "--output=FILE"; takes over word. */
static void
add_for_tasks(struct call *s, char *word)
{
    s->tasks = xgrow(s->tasks, s->n_tasks, &s->cap, sizeof *s->tasks);
    s->tasks[s->n_tasks++] = word;
}

static void
call_free(struct call *s)
{
    for (size_t i = 0; i < s->n_tasks; i++)
        free(s->tasks[i]);
    free(s->tasks);
    slurm_request_free(&s->q);
}

/* --- inside a job --- */

static bool
is_in_job(void)
{
    const char *cluster = getenv("SLURM_CLUSTER_NAME");

    return getenv("SLURM_JOB_ID") && cluster && strcmp(cluster, SLURM_CLUSTER) == 0;
}

/* Options that print the same inside and outside a job. */
static bool
is_question(const char *word)
{
    return word && (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ||
                    strcmp(word, "--help") == 0 || strcmp(word, "--usage") == 0);
}

static int
start_step(char **argv)
{
    struct err e = {0};
    auto_free char *program = places_program("berth-srun-step", &e);

    if (program) {
        execv(program, argv);
        return slurm_fail(1, "cannot run %s: %s", program, strerror(errno));
    }
    return slurm_fail(1, "%s", e.text);
}

/* --- outside a job --- */

/* Collect options for berth-srun-step, except the number of tasks. */
static int
take_srun(void *into, struct slurm_reader *r, int opt)
{
    struct call *s = into;

    if (opt >= r->n_own)
        slurm_take_option(&s->q, r, opt - r->n_own);
    else if (opt == SRUN_OUTPUT || opt == SRUN_ERROR || opt == SRUN_INPUT)
        add_for_tasks(s, xasprintf("%s=%s", r->said, r->value));
    else if (opt == SRUN_KILL)
        add_for_tasks(s, xasprintf("%s=%s", r->said, r->value ? r->value : "1"));
    else if (opt == SRUN_JOBID)
        return slurm_fail(1, "--jobid: a step is started by srun within its job; berth shell "
                             "and berth attach reach others");
    else if (opt == SRUN_MULTI)
        return slurm_fail(1, "--multi-prog: every task runs the same program; test "
                             "SLURM_PROCID in a script");
    return 0;
}

static void
set_command(struct request *r, char *const *front, size_t n_front, char *const *words, int n)
{
    size_t at = 0;

    r->argv = xcalloc(n_front + (size_t)n + 1, sizeof *r->argv);
    for (size_t i = 0; i < n_front; i++)
        r->argv[at++] = xstrdup(front[i]);
    for (int i = 0; i < n; i++)
        r->argv[at++] = xstrdup(words[i]);
}

/* Run the program directly, or through srun within the job if there are tasks or options for
 * it. The inner srun passes on the whole environment of the job. */
static void
set_program(struct call *s, bool several, char *const *words, int n)
{
    char srun[] = "srun", end[] = "--", all[] = "--export=ALL";
    bool chosen = getenv("SRUN_EXPORT_ENV") != NULL;

    if (!several && s->n_tasks == 0) {
        set_command(&s->q.s.req, NULL, 0, words, n);
        return;
    }
    size_t n_front = 0;
    auto_free char **front = xcalloc(s->n_tasks + 3, sizeof *front);
    front[n_front++] = srun;
    if (chosen)
        front[n_front++] = all;
    for (size_t i = 0; i < s->n_tasks; i++)
        front[n_front++] = s->tasks[i];
    front[n_front++] = end;
    set_command(&s->q.s.req, front, n_front, words, n);
}

/* True if more than one task was requested. */
static bool
has_tasks(const struct slurm_request *q)
{
    bool several = false;

    for (size_t i = 0; i < q->n; i++) {
        const char *name = sbatch_option(q->words[i].option)->name;

        if (strcmp(name, "ntasks") == 0 || strcmp(name, "ntasks-per-node") == 0)
            several = strcmp(q->words[i].value, "1") != 0;
    }
    return several;
}

/* NONE anywhere in --export overrides the other names. */
static void
settle_export(struct slurm_request *q)
{
    static const char none[] = "NONE";

    for (size_t i = 0; i < q->n; i++)
        if (strcmp(sbatch_option(q->words[i].option)->name, "export") == 0 &&
            slurm_is_listed_anyhow(q->words[i].value, none))
            q->words[i].value = none;
}

/* Pass on how output files are opened, if there are any. */
static void
add_open_mode(struct call *s)
{
    for (size_t i = 0; s->n_tasks && i < s->q.n; i++)
        if (strcmp(sbatch_option(s->q.words[i].option)->name, "open-mode") == 0)
            add_for_tasks(s, xasprintf("--open-mode=%s", s->q.words[i].value));
}

/* *id: the job's id; 0: none was created. The exit status is then 1, as in Slurm, except for a
 * program that does not exist. */
static int
attach(struct call *s, bool pty, int64_t *id)
{
    struct cli cli = slurm_cli();
    struct err refused = {0};
    int status;

    s->q.s.req.interactive = true;
    s->q.s.req.pty = pty;
    s->q.s.req.requeue = false;
    s->q.s.words.ends = true;
    s->q.s.words.id = id;
    s->q.s.words.refused = &refused;
    status = submit_send(&cli, &s->q.s);
    if (refused.code != ERR_NONE)
        return slurm_fail(1, "Unable to allocate resources: %s", refused.text);
    return *id == 0 && status != err_exit_status(ERR_USAGE) ? 1 : status;
}

static int
run_job(struct call *s, char **words, int n)
{
    auto_script struct submit_script none = {0};
    int64_t id = 0;
    int status;

    settle_export(&s->q);
    status = slurm_settle(&s->q, &none, 1);
    if (status != 0)
        return status;
    env_prefer_own(&s->q.s.words.env);
    if (s->label)
        cli_say("--label: lines are not numbered");
    if (!s->q.s.req.name)
        s->q.s.req.name = xstrndup(compat_name(words[0]), 128);
    if (text_is_utf8(words[0], strlen(words[0]), NULL))
        s->q.s.req.submitted_as = xstrdup(words[0]); /* as in Slurm, without arguments */
    add_open_mode(s);
    set_program(s, has_tasks(&s->q), words, n);
    return attach(s, s->pty, &id);
}

int
compat_srun(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "srun", .usage = srun_usage, .own = srun_own, .jobs = true, .wrong = 1};
    struct call s = {0};
    int status;

    if (is_in_job() && !is_question(argv[1]))
        return start_step(argv);
    slurm_request_begin(&s.q);
    slurm_take_variables(&s.q, VARIABLES_SLURM | VARIABLES_SRUN);
    if (slurm_read(&r, argc, argv, &s, take_srun, &status))
        status = r.n_words > 0 ? run_job(&s, r.words, r.n_words)
                               : slurm_fail(1, "No command given to execute.");
    call_free(&s);
    return status;
}

/* --- salloc --- */

static const char *
login_shell(void)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh";
}

/* The job's first output reports the grant, so it appears when the job starts. */
static int
allocate(struct call *s, char **words, int n)
{
    static const char granted[] =
        "echo \"salloc: Granted job allocation $SLURM_JOB_ID\" >&2; exec \"$@\"";
    static const char quietly[] = "exec \"$@\"";
    auto_script struct submit_script none = {0};
    auto_free char *shell = xstrdup(login_shell());
    auto_free char *text = xstrdup(s->q.quiet ? quietly : granted);
    char sh[] = "/bin/sh", c[] = "-c";
    char *front[] = {sh, c, text, sh};
    int status = slurm_settle(&s->q, &none, 1);
    bool left = false;
    int64_t id = 0;

    if (status != 0)
        return status;
    if (!s->q.s.req.name)
        s->q.s.req.name = n ? xstrndup(compat_name(words[0]), 128) : xstrdup("interactive");
    s->q.s.req.submitted_as = xstrdup("");
    if (n > 0)
        set_command(&s->q.s.req, front, 4, words, n);
    else
        set_command(&s->q.s.req, front, 4, &shell, 1);
    s->q.s.words.left = &left;
    status = attach(s, isatty(STDIN_FILENO), &id);
    if (id && !left && !s->q.quiet)
        cli_say("Relinquishing job allocation %lld", (long long)id);
    return status;
}

static int
take_salloc(void *into, struct slurm_reader *r, int opt)
{
    struct call *s = into;

    if (opt == SALLOC_NO_SHELL)
        return slurm_fail(1, "--no-shell: an allocation ends with its command; submit a job "
                             "with sbatch, or omit --no-shell");
    if (opt >= r->n_own)
        slurm_take_option(&s->q, r, opt - r->n_own);
    return 0;
}

int
compat_salloc(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "salloc", .usage = salloc_usage, .own = salloc_own, .jobs = true, .wrong = 1};
    struct call s = {0};
    int status;

    slurm_request_begin(&s.q);
    slurm_take_variables(&s.q, VARIABLES_SALLOC);
    if (slurm_read(&r, argc, argv, &s, take_salloc, &status))
        status = allocate(&s, r.words, r.n_words);
    call_free(&s);
    return status;
}
