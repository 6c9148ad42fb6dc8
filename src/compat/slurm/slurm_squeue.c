/* squeue: pending and running jobs in Slurm's columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_json.h"
#include "compat/slurm/slurm_table.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

#define DEFAULT_COLUMNS "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define LONG_COLUMNS    "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
#define START_COLUMNS   "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"

static const char usage[] =
    "Usage: squeue [OPTIONS]\n"
    "\n"
    "Berth's jobs that wait and run, as Slurm's squeue shows them.\n"
    "\n"
    "  -j, --jobs=LIST     these jobs; 12, 12_3, separated by commas\n"
    "  -u, --user=LIST     jobs of these users;  --me: your own\n"
    "  -n, --name=LIST     jobs of these names\n"
    "  -t, --states=LIST   in these states, PENDING or PD; all: ended ones too\n"
    "  -o, --format=FORMAT and -O, --Format=NAMES  columns, as squeue(1) has them\n"
    "  -S, --sort=LETTERS  order, of i j u t T p P S e l m M C V Q; - turns one round\n"
    "  -r, --array         a line for each task;  -h: no header;  -l: more columns\n"
    "      --start         when jobs that wait are expected to start\n"
    "  -i, --iterate=N     again every N seconds\n"
    "      --json          everything, as JSON";

struct squeue {
    json_t *ids; /* owned; NULL: all */
    const char *states, *users, *names, *nodes, *letters, *words, *sort;
    bool each, no_header, starts, is_long, json;
    int64_t every_s;
    struct slurm_table table;
    struct slurm_jobs jobs;
};

enum {
    OPT_ITERATE,
    OPT_JOBS,
    OPT_ME,
    OPT_STATES,
    OPT_STEPS,
    OPT_USER,
};
static const struct slurm_option own[] = {
    [OPT_ITERATE] = {.option = {"iterate", 'i', TAKES_VALUE}},
    [OPT_JOBS] = {.option = {"jobs", 'j', TAKES_MAYBE}},
    [OPT_ME] = {.option = {"me", 0, TAKES_NOTHING}},
    [OPT_STATES] = {.option = {"states", 't', TAKES_VALUE}},
    [OPT_STEPS] = {.option = {"steps", 's', TAKES_MAYBE}},
    [OPT_USER] = {.option = {"user", 'u', TAKES_VALUE}},
    {.option = {"account", 'A', TAKES_VALUE}},
    {.option = {"all", 'a', TAKES_NOTHING}},
    {.option = {"array", 'r', TAKES_NOTHING}, SLURM_INTO(struct squeue, each)},
    {.option = {"format", 'o', TAKES_VALUE}, SLURM_INTO(struct squeue, letters)},
    {.option = {"Format", 'O', TAKES_VALUE}, SLURM_INTO(struct squeue, words)},
    {.option = {"noheader", 'h', TAKES_NOTHING}, SLURM_INTO(struct squeue, no_header)},
    {.option = {"hide", 0, TAKES_NOTHING}},
    {.option = {"json", 0, TAKES_NOTHING}, SLURM_INTO(struct squeue, json)},
    {.option = {"licenses", 'L', TAKES_VALUE}},
    {.option = {"local", 0, TAKES_NOTHING}},
    {.option = {"long", 'l', TAKES_NOTHING}, SLURM_INTO(struct squeue, is_long)},
    {.option = {"clusters", 'M', TAKES_VALUE}},
    {.option = {"name", 'n', TAKES_VALUE}, SLURM_INTO(struct squeue, names)},
    {.option = {"nodelist", 'w', TAKES_VALUE}, SLURM_INTO(struct squeue, nodes)},
    {.option = {"partition", 'p', TAKES_VALUE}},
    {.option = {"qos", 'q', TAKES_VALUE}},
    {.option = {"reservation", 'R', TAKES_VALUE}},
    {.option = {"sort", 'S', TAKES_VALUE}, SLURM_INTO(struct squeue, sort)},
    {.option = {"start", 0, TAKES_NOTHING}, SLURM_INTO(struct squeue, starts)},
    {.option = {"verbose", 'v', TAKES_NOTHING}},
    {.option = {"array-unique", 0, TAKES_NOTHING}},
    {.option = {"federation", 0, TAKES_NOTHING}},
    {.option = {"noconvert", 0, TAKES_NOTHING}},
    {.option = {"priority", 'P', TAKES_NOTHING}},
    {.option = {"sibling", 0, TAKES_NOTHING}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* --- options --- */

static int
take_ids(struct squeue *s, const char *text)
{
    struct err e = {0};

    if (!text)
        return 0;
    s->ids = s->ids ? s->ids : json_array();
    if (slurm_read_ids(text, s->ids, NULL, &e) < 0)
        return slurm_fail(1, "Invalid job id: %s", e.text);
    return 0;
}

static int
check_states(const char *list)
{
    auto_free char *copy = xstrdup(list);
    auto_buf struct buf all = BUF_INIT;
    char *rest = copy, *word;

    while ((word = strsep(&rest, ","))) {
        if (strcasecmp(word, "all") == 0 || slurm_is_state(word))
            continue;
        slurm_add_states(&all);
        (void)slurm_fail(1, "Invalid job state specified: %s", word);
        return slurm_fail(1, "Valid job states include: %s", buf_str(&all));
    }
    return 0;
}

/* Report unknown users; the rest of the list still applies. */
static void
say_unknown_users(const char *list)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *word;

    while ((word = strsep(&rest, ",")))
        if (!slurm_is_user(word))
            (void)slurm_fail(1, "Invalid user: %s", word);
}

static int
take_option(void *into, struct slurm_reader *r, int opt)
{
    struct squeue *s = into;
    struct err e = {0};

    switch (opt) {
    case OPT_ITERATE:
        if (parse_int(r->value, 1, 86400, &s->every_s, &e) < 0)
            return slurm_fail(1, "--iterate=%s", r->value);
        break;
    case OPT_JOBS:
        return take_ids(s, r->value ? r->value : slurm_take_word(r));
    case OPT_ME:
        s->users = slurm_own_name();
        break;
    case OPT_STATES:
        s->states = r->value;
        return check_states(r->value);
    case OPT_STEPS:
        return slurm_fail(1, "--steps: steps of jobs are not recorded");
    case OPT_USER:
        s->users = r->value;
        say_unknown_users(r->value);
        break;
    default: /* no effect on one machine */
        break;
    }
    return 0;
}

/* An empty variable counts as unset. */
static const char *
variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* Apply variables for options not given. Those for partitions, accounts and the like have no
 * effect, like their options. */
static int
take_variables(struct squeue *s)
{
    const char *users = s->users ? NULL : variable("SQUEUE_USERS");
    const char *states = s->states ? NULL : variable("SQUEUE_STATES");

    if (!s->names)
        s->names = variable("SQUEUE_NAMES");
    if (users) {
        s->users = users;
        say_unknown_users(users);
    }
    if (!states)
        return 0;
    s->states = states;
    return check_states(states);
}

/* --- selection --- */

static bool
is_shown(const struct slurm_job *job, const void *arg)
{
    const struct squeue *s = arg;

    if (s->users && !slurm_is_of(job, s->users))
        return false;
    if (s->names && !slurm_is_listed(s->names, slurm_name(job)))
        return false;
    if (s->nodes && (slurm_is_waiting(job) || !slurm_is_here(s->nodes)))
        return false;
    if (s->starts && !slurm_is_waiting(job))
        return false;
    return s->states ? slurm_state_is_listed(job->state, s->states) : !job->state->ended;
}

/* --- order --- */

/* Slurm's sort keys, and three numeric ones of our own. */
#define SORTED         "bBcCdDefgGhHiIjJlLmMnNOpPQStTuUvVzAFy"
#define CLUSTER        "cluster"
#define CLUSTER_LENGTH (sizeof CLUSTER - 1)

static const char *sort_letters;

/* Numbers within job and task ids sort numerically. Jobs without a node sort last. */
static int
compare_texts(const struct slurm_field *f, const struct slurm_job *x, const struct slurm_job *y)
{
    auto_buf struct buf left = BUF_INIT, right = BUF_INIT;

    slurm_value_add(&f->value, &(struct slurm_row){.job = x}, &left);
    slurm_value_add(&f->value, &(struct slurm_row){.job = y}, &right);
    if (!left.len != !right.len)
        return left.len ? -1 : 1;
    return strchr("iK", f->letter) ? strverscmp(buf_str(&left), buf_str(&right))
                                   : strcmp(buf_str(&left), buf_str(&right));
}

/* The sort value of a column: its number or time; an unknown time sorts last. */
static int64_t
number_of(const struct slurm_value *v, const struct slurm_job *job)
{
    int64_t at_us;

    if (v->number)
        return v->number(job);
    at_us = v->time_us(job);
    return at_us ? at_us / 1000000 : INT64_MAX;
}

/* States sort by Slurm's state number, not alphabetically. */
static int
compare_by(char letter, const struct slurm_job *x, const struct slurm_job *y)
{
    const struct slurm_field *f = slurm_field_of(squeue_fields, letter);

    if (f && (f->value.number || f->value.time_us)) {
        int64_t left = number_of(&f->value, x), right = number_of(&f->value, y);

        return (left > right) - (left < right);
    }
    if (letter == 't' || letter == 'T')
        return slurm_states_compare(x->state, y->state);
    return f ? compare_texts(f, x, y) : 0;
}

static int
compare_jobs(const void *a, const void *b)
{
    const struct slurm_job *x = a, *y = b;

    for (const char *p = sort_letters; *p; p++) {
        bool down = *p == '-';
        int order;

        p += down || *p == '+';
        if (!*p)
            break;
        if (strncasecmp(p, CLUSTER, CLUSTER_LENGTH) == 0) {
            p += CLUSTER_LENGTH - 1; /* the same for all jobs */
            continue;
        }
        order = compare_by(*p, x, y);
        if (order)
            return down ? -order : order;
    }
    return (x->id > y->id) - (x->id < y->id);
}

/* Slurm's default order: partition, state, descending priority. The daemon lists pending jobs
 * by priority already, and this order is kept. */
static void
sort_jobs(struct slurm_jobs *list, const char *letters)
{
    struct slurm_jobs sorted = {0};

    if (letters && letters[0]) {
        sort_letters = letters;
        qsort(list->at, list->n, sizeof *list->at, compare_jobs);
        return;
    }
    sorted.at = xcalloc(list->n + 1, sizeof *sorted.at);
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < list->n; i++) {
            const struct slurm_job *job = &list->at[i];

            if ((slurm_is_waiting(job) ? 0 : job->state->ended ? 2 : 1) == pass)
                sorted.at[sorted.n++] = *job;
        }
    }
    free(list->at);
    *list = sorted;
}

/* Commas between letters are optional. Like Slurm, report the last unknown letter. */
static int
check_sort(const char *letters)
{
    char wrong = '\0';

    for (const char *p = letters; *p; p++) {
        if (strncasecmp(p, CLUSTER, CLUSTER_LENGTH) == 0)
            p += CLUSTER_LENGTH - 1;
        else if (!strchr(SORTED ",+-", *p))
            wrong = *p;
    }
    return wrong ? slurm_fail(1, "Invalid sort specification: %c", wrong) : 0;
}

/* The fields that columns and sort order need. */
static enum slurm_detail
detail_of(const struct squeue *s)
{
    int most = s->json ? SLURM_WHOLE : slurm_table_detail(&s->table);

    for (const char *p = s->sort; p && *p; p++) {
        const struct slurm_field *f = slurm_field_of(squeue_fields, *p);

        if (f && f->detail > most)
            most = f->detail;
    }
    return (enum slurm_detail)most;
}

/* --- output --- */

static int
ask(struct squeue *s)
{
    auto_client struct client *c = slurm_connect("slurm_load_jobs error");
    struct slurm_wish wish = {.select = s->ids,
                              .ended = s->states && slurm_names_ended(s->states)};
    struct err e = {0};

    if (!c)
        return 1;
    wish.detail = detail_of(s);
    if (slurm_jobs_ask(c, &wish, &s->jobs, &e) < 0 && e.code != ERR_NO_JOB)
        return slurm_fail(1, "%s", e.text);
    /* Missing jobs are an error only if a single job was requested. */
    if (e.code == ERR_NO_JOB && json_array_size(s->ids) == 1) {
        fprintf(stderr, "slurm_load_jobs error: Invalid job id specified\n");
        return 1;
    }
    if (s->each)
        slurm_jobs_split(&s->jobs);
    return 0;
}

static void
add_table(const struct squeue *s, struct buf *out)
{
    if (s->is_long)
        slurm_add_date(out);
    if (!s->no_header)
        slurm_table_add_header(&s->table, out);
    for (size_t i = 0; i < s->jobs.n; i++)
        slurm_table_add_row(&s->table, &(struct slurm_row){.job = &s->jobs.at[i]}, out);
}

static int
show(struct squeue *s)
{
    auto_buf struct buf out = BUF_INIT;
    int status = ask(s);

    if (status != 0)
        return status;
    slurm_jobs_keep(&s->jobs, is_shown, s);
    sort_jobs(&s->jobs, s->sort);
    if (s->json)
        return slurm_put_jobs(&s->jobs);
    add_table(s, &out);
    return cli_put(&out);
}

/* Variables apply only if no option selects columns, so that a user's profile does not
 * override a script's choice. SQUEUE_FORMAT takes precedence over SQUEUE_FORMAT2. */
static int
take_columns(struct squeue *s)
{
    if (s->letters && s->words)
        return slurm_fail(1, "-o (--format) is incompatible with -O (--Format)");
    if (s->letters && s->is_long)
        return slurm_fail(1, "Options -o(--format) and -l(--long) are mutually exclusive. "
                             "Please remove one and retry.");
    if (!s->letters && !s->words && !s->is_long && !s->starts) {
        s->letters = getenv("SQUEUE_FORMAT");
        s->words = s->letters ? NULL : getenv("SQUEUE_FORMAT2");
    }
    return 0;
}

static int
choose_columns(struct squeue *s)
{
    struct err e = {0};
    int status = take_columns(s);

    if (status != 0)
        return status;
    if (s->words && slurm_table_names(&s->table, squeue_fields, s->words, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    if (!s->words)
        slurm_table_letters(&s->table, squeue_fields,
                            s->letters   ? s->letters
                            : s->starts  ? START_COLUMNS
                            : s->is_long ? LONG_COLUMNS
                                         : DEFAULT_COLUMNS);
    for (const char *p = s->table.unknown; p && *p; p++)
        (void)slurm_fail(1, "Invalid job format specification: %c", *p);
    return 0;
}

static int
watch(struct squeue *s)
{
    int status = show(s);

    while (status == 0 && s->every_s > 0) {
        sleep((unsigned)s->every_s);
        slurm_jobs_free(&s->jobs);
        status = show(s);
    }
    return status;
}

int
compat_squeue(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "squeue", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct squeue s = {.sort = getenv("SQUEUE_SORT"), .each = getenv("SQUEUE_ARRAY") != NULL};
    int status;

    if (slurm_read(&r, argc, argv, &s, take_option, &status) &&
        (status = slurm_refuse_words(&r)) == 0 && (status = take_variables(&s)) == 0 &&
        (status = choose_columns(&s)) == 0) {
        s.sort = s.sort ? s.sort : s.starts ? "S" : "";
        status = check_sort(s.sort);
        status = status ? status : watch(&s);
    }
    json_decref(s.ids);
    slurm_table_free(&s.table);
    slurm_jobs_free(&s.jobs);
    return status;
}
