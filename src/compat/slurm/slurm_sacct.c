/* sacct: past and present jobs, as Slurm's accounting shows them. */
#include "compat/slurm/slurm_sacct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_json.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

#define DEFAULT_COLUMNS "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define BRIEF_COLUMNS   "jobid,state,exitcode"
#define LONG_COLUMNS                                                                           \
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,"        \
    "maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,"         \
    "mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,"             \
    "avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,"              \
    "maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,"                    \
    "maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres,tresusageinave,"         \
    "tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,"                     \
    "tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"                    \
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"

static const char usage[] =
    "Usage: sacct [OPTIONS]\n"
    "\n"
    "Berth's jobs, ended ones too, as Slurm's sacct shows them.\n"
    "\n"
    "  -j, --jobs=LIST      these jobs; 12, 12_3, separated by commas\n"
    "  -S, --starttime=TIME, -E, --endtime=TIME  between these times; from midnight otherwise\n"
    "  -s, --state=LIST     in these states;  -u, --user=LIST, -a: all users;  --name=LIST\n"
    "  -o, --format=NAMES   columns, as jobid,state%20;  -e: their names\n"
    "  -X, --allocations    jobs only, not their steps\n"
    "  -P, --parsable2, -p, --parsable, --delimiter=TEXT;  -n: no header;  -b, -l\n"
    "      --json           everything, as JSON";

struct sacct {
    json_t *ids;   /* owned; NULL: all */
    json_t *steps; /* owned; step name for each of ids, or null */
    const char *format, *states, *users, *names;
    const char *delimiter; /* NULL: not given */
    bool all, no_steps, no_header, json, is_help, is_parsable;
    bool by_step;              /* some of ids has a step */
    int64_t from_us, until_us; /* 0: not given */
    struct sacct_table table;
};

enum {
    OPT_BRIEF,
    OPT_END,
    OPT_JOBS,
    OPT_LONG,
    OPT_PARSABLE,
    OPT_PARSABLE2,
    OPT_START,
    OPT_STATE,
    OPT_USER,
    OPT_FILE,
};
static const struct slurm_option own[] = {
    [OPT_BRIEF] = {.option = {"brief", 'b', TAKES_NOTHING}},
    [OPT_END] = {.option = {"endtime", 'E', TAKES_VALUE}},
    [OPT_JOBS] = {.option = {"jobs", 'j', TAKES_VALUE}},
    [OPT_LONG] = {.option = {"long", 'l', TAKES_NOTHING}},
    [OPT_PARSABLE] = {.option = {"parsable", 'p', TAKES_NOTHING}},
    [OPT_PARSABLE2] = {.option = {"parsable2", 'P', TAKES_NOTHING}},
    [OPT_START] = {.option = {"starttime", 'S', TAKES_VALUE}},
    [OPT_STATE] = {.option = {"state", 's', TAKES_VALUE}},
    [OPT_USER] = {.option = {"user", 'u', TAKES_VALUE}},
    [OPT_FILE] = {.option = {"file", 'f', TAKES_VALUE}},
    {.option = {"allusers", 'a', TAKES_NOTHING}, SLURM_INTO(struct sacct, all)},
    {.option = {"allocations", 'X', TAKES_NOTHING}, SLURM_INTO(struct sacct, no_steps)},
    {.option = {"delimiter", 0, TAKES_VALUE}, SLURM_INTO(struct sacct, delimiter)},
    {.option = {"format", 'o', TAKES_VALUE}, SLURM_INTO(struct sacct, format)},
    {.option = {"helpformat", 'e', TAKES_NOTHING}, SLURM_INTO(struct sacct, is_help)},
    {.option = {"json", 0, TAKES_NOTHING}, SLURM_INTO(struct sacct, json)},
    {.option = {"name", 0, TAKES_VALUE}, SLURM_INTO(struct sacct, names)},
    {.option = {"noheader", 'n', TAKES_NOTHING}, SLURM_INTO(struct sacct, no_header)},
    /* Options that have no effect on a single machine, or are always on. */
    {.option = {"accounts", 'A', TAKES_VALUE}},
    {.option = {"allclusters", 'L', TAKES_NOTHING}},
    {.option = {"associations", 'x', TAKES_VALUE}},
    {.option = {"clusters", 'M', TAKES_VALUE}},
    {.option = {"completion", 'c', TAKES_NOTHING}},
    {.option = {"duplicates", 'D', TAKES_NOTHING}},
    {.option = {"federation", 0, TAKES_NOTHING}},
    {.option = {"local", 0, TAKES_NOTHING}},
    {.option = {"noconvert", 0, TAKES_NOTHING}},
    {.option = {"nodelist", 'N', TAKES_VALUE}},
    {.option = {"partition", 'r', TAKES_VALUE}},
    {.option = {"qos", 'q', TAKES_VALUE}},
    {.option = {"truncate", 'T', TAKES_NOTHING}},
    {.option = {"units", 0, TAKES_VALUE}},
    {.option = {"verbose", 'v', TAKES_NOTHING}},
    {.option = {"wckeys", 'W', TAKES_VALUE}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* --- options --- */

static int
take_ids(struct sacct *s, const char *text)
{
    struct err e = {0};

    s->ids = s->ids ? s->ids : json_array();
    s->steps = s->steps ? s->steps : json_array();
    s->by_step |= strchr(text, '.') != NULL;
    if (slurm_read_ids(text, s->ids, s->steps, &e) < 0)
        return slurm_fail(1, "Bad job/step specified: %s", text);
    return 0;
}

static int
check_states(const char *list)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *word;

    while ((word = strsep(&rest, ",")))
        if (!slurm_is_state(word))
            return slurm_fail(1, "unrecognized job state value '%s'", word);
    return 0;
}

static int
take_time(int64_t *at_us, const char *text)
{
    struct err e = {0};

    return slurm_read_time(text, at_us, &e) < 0 ? slurm_fail(1, "%s", e.text) : 0;
}

/* -1 means all users. */
static int
take_users(struct sacct *s, const char *list)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *word;

    s->all = strcmp(list, "-1") == 0;
    s->users = s->all ? NULL : list;
    while (s->users && (word = strsep(&rest, ",")))
        if (!slurm_is_user(word))
            return slurm_fail(1, "Invalid user id: %s", word);
    return 0;
}

static int
refuse_words(char *const *words, int n)
{
    fprintf(stderr, "Unknown arguments:");
    for (int i = 0; i < n; i++)
        fprintf(stderr, " %s", words[i]);
    fprintf(stderr, "\n");
    return 1;
}

static int
list_fields(void)
{
    auto_buf struct buf out = BUF_INIT;
    int i = 0;

    for (const struct sacct_field *f = sacct_fields; f->name; f++)
        buf_addf(&out, "%-19s%s", f->name, ++i % 4 == 0 ? "\n" : " ");
    buf_adds(&out, i % 4 ? "\n" : "");
    return cli_put(&out);
}

static int
take_option(void *into, struct slurm_reader *r, int opt)
{
    struct sacct *s = into;

    switch (opt) {
    case OPT_BRIEF:
        s->format = BRIEF_COLUMNS;
        break;
    case OPT_END:
        return take_time(&s->until_us, r->value);
    case OPT_FILE:
        return slurm_fail(1, "--file: records are Berth's, and in no file of Slurm's");
    case OPT_JOBS:
        return take_ids(s, r->value);
    case OPT_LONG:
        s->format = LONG_COLUMNS;
        break;
    case OPT_PARSABLE:
    case OPT_PARSABLE2:
        s->is_parsable = true;
        s->table.at_end = opt == OPT_PARSABLE;
        break;
    case OPT_START:
        return take_time(&s->from_us, r->value);
    case OPT_STATE:
        s->states = r->value;
        return check_states(r->value);
    case OPT_USER:
        return take_users(s, r->value);
    default:
        break;
    }
    return 0;
}

/* --- selection --- */

/* A held job, or one that waits for a dependency, is not yet eligible. */
static bool
is_eligible(const struct slurm_job *job)
{
    const char *reason = slurm_reason(job);

    return !slurm_is_waiting(job) ||
           (strcmp(reason, "JobHeldUser") != 0 && strcmp(reason, "Dependency") != 0);
}

static bool
is_within(const struct sacct *s, const struct slurm_job *job)
{
    if (s->ids && !s->from_us && !s->until_us)
        return true;
    if (s->until_us && job->submitted_us > s->until_us)
        return false;
    if (s->until_us && s->states && job->ended_us > s->until_us)
        return false;
    return (!job->ended_us || job->ended_us >= s->from_us) && is_eligible(job);
}

static bool
is_shown(const struct slurm_job *job, const void *arg)
{
    const struct sacct *s = arg;

    if (s->users && !slurm_is_of(job, s->users))
        return false;
    if (s->names && !slurm_is_listed(s->names, slurm_name(job)))
        return false;
    if (s->states && !slurm_state_is_listed(job->state, s->states))
        return false;
    return is_within(s, job);
}

/* A job selected only by names of its steps has no line of its own. */
static bool
is_line_shown(const struct sacct *s, const struct slurm_row *row)
{
    bool by_step = false, is_it = false;
    const json_t *word;
    size_t i;

    if (!s->by_step)
        return true;
    json_array_foreach(s->ids, i, word)
    {
        const char *step = json_string_value(json_array_get(s->steps, i));

        if (!slurm_is_named(row->job, json_string_value(word)))
            continue;
        if (!step)
            return true;
        by_step = true;
        is_it |= strcmp(step, sacct_step(row->job)) == 0;
    }
    return !by_step || (row->is_step && is_it);
}

static bool
is_step_shown(const struct slurm_job *job, const void *arg)
{
    const struct sacct *s = arg;
    const struct slurm_row row = {.job = job, .is_step = true};

    return !s->no_steps && job->started_us && is_line_shown(s, &row);
}

/* sacct's defaults: from midnight, or with --state only the present moment; the own jobs, or
 * all jobs for root and with --jobs. */
static void
settle(struct sacct *s)
{
    struct err e;

    if (!s->from_us && !s->ids && s->states)
        s->from_us = clock_wall_us();
    else if (!s->from_us && !s->ids)
        (void)slurm_read_time("today", &s->from_us, &e);
    if (!s->until_us && !s->ids && s->states)
        s->until_us = s->from_us;
    if (!s->users && !s->all && !s->ids && geteuid() != 0)
        s->users = slurm_own_name();
}

/* --- output --- */

/* Unknown jobs are not an error; they have no lines. */
static int
ask(const struct sacct *s, struct slurm_jobs *jobs)
{
    auto_client struct client *c = slurm_connect("sacct");
    const struct slurm_wish wish = {
        .select = s->ids, .ended = true, .since_us = s->from_us, .detail = SLURM_WHOLE};
    struct err e = {0};

    if (!c)
        return 1;
    if (slurm_jobs_ask(c, &wish, jobs, &e) < 0 && e.code != ERR_NO_JOB)
        return slurm_fail(1, "%s", e.text);
    slurm_jobs_keep(jobs, is_shown, s);
    slurm_jobs_sort(jobs);
    return 0;
}

static int
show(const struct sacct *s)
{
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    auto_buf struct buf out = BUF_INIT;
    int status = ask(s, &jobs);

    if (status != 0)
        return status;
    if (s->json)
        return slurm_put_accounts(&jobs, is_step_shown, s);
    if (!s->no_header)
        sacct_add_header(&s->table, &out);
    for (size_t i = 0; i < jobs.n; i++) {
        struct slurm_row row = {.job = &jobs.at[i]};

        if (is_line_shown(s, &row))
            sacct_add_row(&s->table, &row, &out);
        row.is_step = true;
        if (is_step_shown(row.job, s))
            sacct_add_row(&s->table, &row, &out);
    }
    return cli_put(&out);
}

static int
run(struct sacct *s)
{
    const char *format = s->format ? s->format : getenv("SACCT_FORMAT");
    struct err e = {0};

    if (s->is_parsable)
        s->table.delimiter = s->delimiter ? s->delimiter : "|";
    if (sacct_read_format(&s->table, format ? format : DEFAULT_COLUMNS, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    settle(s);
    return show(s);
}

int
compat_sacct(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "sacct", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct sacct s = {0};
    int status;
    bool is_read = slurm_read(&r, argc, argv, &s, take_option, &status);

    if (is_read && r.n_words > 0)
        status = refuse_words(r.words, r.n_words);
    else if (is_read)
        status = s.is_help ? list_fields() : run(&s);
    json_decref(s.ids);
    json_decref(s.steps);
    sacct_table_free(&s.table);
    return status;
}
