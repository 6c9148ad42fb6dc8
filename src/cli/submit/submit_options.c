/* The options of `submit`; see submit_options.h. The table is built at each start: some thirty
 * pointers cost less than a second list that can get out of step. */
#include "cli/submit/submit_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/request.h"
#include "cli/ask/model_table.h"
#include "cli/ask/submit_env.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "spec/attr.h"
#include "spec/models.h"
#include "spec/when.h"

#define OPTIONS_MAX 128

enum {
    OWN_TITLE,
    OWN_PARSABLE,
    OWN_WAIT,
    OWN_DRY_RUN,
    OWN_EXPORT,
    OWN_IGNORE,
    OWN_MODELS,
    OWN_SIM,
    OWN_COUNT
};

static const struct opt own[OWN_COUNT] = {
    [OWN_TITLE] = OPT_GROUP("Submission"),
    [OWN_PARSABLE] = {"parsable", 0, NULL, "print only the job's id"},
    [OWN_WAIT] = {"wait", 'W', NULL, "wait until it has ended; exit with its status"},
    [OWN_DRY_RUN] = {"dry-run", 0, NULL,
                     "queue nothing; show the request and where it would start"},
    [OWN_EXPORT] = {"export", 0, "WHAT",
                    "variables to pass: ALL (default), NONE, or names: A,B=1"},
    [OWN_IGNORE] = {"ignore-unsupported", 0, NULL,
                    "continue if a #SBATCH line is not supported"},
    [OWN_MODELS] = {"models", 0, "FILE",
                    "table of what models (--llm NAME in the command) need"},
    [OWN_SIM] = {"sim", 0, "SPEC", "simulated GPUs, if this starts the daemon (4x24G)"},
};

/* Row i of options belongs to attrs[i] or, if that is NULL, to own[i]. */
struct built {
    struct opt options[OPTIONS_MAX];
    const struct attr *attrs[OPTIONS_MAX];
    int n;
};

static void
add(struct built *b, const char *name, char letter, const struct attr *a, const char *help)
{
    if (b->n >= OPTIONS_MAX - 1)
        err_abort("more than %d options", OPTIONS_MAX);
    b->attrs[b->n] = a;
    b->options[b->n++] = (struct opt){name, letter, a->metavar ? a->metavar : OPT_SWITCH, help};
}

static void
build(struct built *b)
{
    const struct attr *a;

    memset(b, 0, sizeof *b);
    for (b->n = 0; b->n < OWN_COUNT; b->n++)
        b->options[b->n] = own[b->n];
    for (size_t i = 0; (a = attr_at(i)); i++) {
        if (!a->doors)
            b->options[b->n++] = (struct opt)OPT_GROUP(a->name);
        else if (a->doors & ATTR_COMMAND_LINE)
            add(b, a->name, a->letter, a, a->help);
    }
    /* Aliases are accepted, but not listed. */
    for (size_t i = 0; (a = attr_at(i)); i++) {
        for (int k = 0; k < ATTR_ALIASES_MAX && a->aliases[k]; k++) {
            if (a->doors & ATTR_COMMAND_LINE)
                add(b, a->aliases[k], 0, a, NULL);
        }
    }
}

static int
take_own(struct submit_words *w, int which, const char *value, struct err *e)
{
    switch (which) {
    case OWN_PARSABLE:
        w->parsable = true;
        break;
    case OWN_WAIT:
        w->wait = true;
        break;
    case OWN_DRY_RUN:
        w->dry_run = true;
        break;
    case OWN_EXPORT:
        return env_export(&w->env, value, e) ? err_prefix(e, "--export") : 0;
    case OWN_IGNORE:
        w->ignore_unsupported = true;
        break;
    case OWN_MODELS:
        w->models = value;
        break;
    case OWN_SIM:
        w->sim = value;
        break;
    default:
        break;
    }
    return 0;
}

static time_t
to_time(struct tm *local)
{
    return mktime(local);
}

void
submit_read_clock(struct when_clock *clock)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    clock->now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    localtime_r(&now.tv_sec, &clock->local);
    clock->to_time = to_time;
}

int
submit_read_options(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                    char **argv, struct request *req, struct submit_words *words)
{
    /* The reader keeps pointers only to words after this function returns. */
    struct built b;
    struct page whole = *page;
    struct when_clock clock;
    struct err e = {0};
    int opt;

    submit_read_clock(&clock);
    build(&b);
    whole.options = b.options;
    opt_begin(r, cli, &whole, argc, argv);
    r->stop_at_word = true;
    while ((opt = opt_next(r)) >= 0) {
        const struct attr *a = b.attrs[opt];
        int rc = a ? attr_set_at(req, a->name, r->value, ATTR_COMMAND_LINE, &clock, &e)
                   : take_own(words, opt, r->value, &e);

        if (rc < 0) {
            r->status = cli_fail(&e);
            return OPT_EXIT;
        }
    }
    return opt;
}

int
submit_finish_request(struct request *req, const struct submit_words *words)
{
    struct models *table;
    const char *idle, *why;
    struct err e = {0};

    if (words->models) {
        table = modeltable_read(words->models, &e);
        if (!table)
            return cli_fail(&e);
        models_apply(table, req);
        models_free(table);
    }
    if (request_validate(req, &e) < 0)
        return cli_fail(&e);
    idle = request_idle_option(req, &why);
    if (idle)
        cli_say("--%s: %s%s", idle, why,
                req->limit_ms ? ""
                              : "; set one with --time, unless the daemon's settings have a "
                                "default");
    if (req->gpus_rounded)
        cli_say("gpus: only one GPU can be shared; this requests %d whole GPUs",
                req->demand.gpus);
    return 0;
}

void
submit_words_free(struct submit_words *w)
{
    free(w->cwd);
    env_free(&w->env);
}
