/* scancel: cancels jobs, or sends them a signal. */
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

static const char usage[] =
    "Usage: scancel [OPTIONS] [job_id[_task_id] ...]\n"
    "\n"
    "  -n, --name=NAME, -u, --user=USER, --me, -t, --state=STATE, -p, --partition=NAME,\n"
    "  -w, --nodelist=NODE  jobs that all of these fit\n"
    "  -s, --signal=NAME  send a signal and do not cancel; -b, -f: to all of the job as well\n"
    "  -H, --hurry, -Q, --quiet, -v, --verbose";

struct scancel {
    json_t *ids; /* owned */
    const char *name, *node, *partition, *state, *user;
    int signal; /* 0: cancel */
    bool batch, quiet, verbose;
};

enum {
    OPT_ACCOUNT,
    OPT_INTERACTIVE,
    OPT_ME,
    OPT_CLUSTERS,
    OPT_QOS,
    OPT_RESERVATION,
    OPT_SIGNAL,
    OPT_STATE,
    OPT_USER,
    OPT_WCKEY,
};
static const struct slurm_option own[] = {
    [OPT_ACCOUNT] = {.option = {"account", 'A', TAKES_VALUE}},
    [OPT_INTERACTIVE] = {.option = {"interactive", 'i', TAKES_NOTHING}},
    [OPT_ME] = {.option = {"me", 0, TAKES_NOTHING}},
    [OPT_CLUSTERS] = {.option = {"clusters", 'M', TAKES_VALUE}},
    [OPT_QOS] = {.option = {"qos", 'q', TAKES_VALUE}},
    [OPT_RESERVATION] = {.option = {"reservation", 'R', TAKES_VALUE}},
    [OPT_SIGNAL] = {.option = {"signal", 's', TAKES_VALUE}},
    [OPT_STATE] = {.option = {"state", 't', TAKES_VALUE}},
    [OPT_USER] = {.option = {"user", 'u', TAKES_VALUE}},
    [OPT_WCKEY] = {.option = {"wckey", 0, TAKES_VALUE}},
    {.option = {"batch", 'b', TAKES_NOTHING}, SLURM_INTO(struct scancel, batch)},
    {.option = {"ctld", 0, TAKES_NOTHING}},
    {.option = {"full", 'f', TAKES_NOTHING}},
    {.option = {"hurry", 'H', TAKES_NOTHING}},
    {.option = {"name", 'n', TAKES_VALUE}, SLURM_INTO(struct scancel, name)},
    {.option = {"partition", 'p', TAKES_VALUE}, SLURM_INTO(struct scancel, partition)},
    {.option = {"quiet", 'Q', TAKES_NOTHING}, SLURM_INTO(struct scancel, quiet)},
    {.option = {"verbose", 'v', TAKES_NOTHING}, SLURM_INTO(struct scancel, verbose)},
    {.option = {"nodelist", 'w', TAKES_VALUE}, SLURM_INTO(struct scancel, node)},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* Filters on attributes that Berth's jobs lack match no job. */
static int
refuse_filter(const struct slurm_reader *r)
{
    return slurm_fail(1, "%s=%s fits no job: jobs have nothing like that here; name the jobs",
                      r->said, r->value);
}

static int
take_signal(struct scancel *s, const char *value)
{
    struct err e = {0};

    if (parse_signal(value, &s->signal, &e) < 0)
        return slurm_fail(1, "Unknown job signal: %s", value);
    return 0;
}

static int
take_state(struct scancel *s, const char *value)
{
    s->state = value;
    return slurm_is_state(value) ? 0 : slurm_fail(1, "Invalid job state: %s", value);
}

static int
take_user(struct scancel *s, const char *value)
{
    s->user = value;
    return slurm_is_user(value) ? 0 : slurm_fail(1, "Invalid user name: %s", value);
}

static int
take_option(void *into, struct slurm_reader *r, int opt)
{
    struct scancel *s = into;

    switch (opt) {
    case OPT_ACCOUNT:
    case OPT_QOS:
    case OPT_RESERVATION:
    case OPT_WCKEY:
        return refuse_filter(r);
    case OPT_CLUSTERS:
        if (!slurm_is_listed(r->value, SLURM_CLUSTER))
            return slurm_fail(
                1, "--clusters: %s is not here; the one cluster is " SLURM_CLUSTER, r->value);
        break;
    case OPT_INTERACTIVE:
        return slurm_fail(1, "--interactive: nothing is asked here; name the jobs");
    case OPT_ME:
        s->user = slurm_own_name();
        break;
    case OPT_SIGNAL:
        return take_signal(s, r->value);
    case OPT_STATE:
        return take_state(s, r->value);
    case OPT_USER:
        return take_user(s, r->value);
    default: /* no effect here */
        break;
    }
    return 0;
}

/* True if options filter jobs; is_meant tests each of these filters. */
static bool
is_filtered(const struct scancel *s)
{
    return s->name || s->node || s->partition || s->state || s->user;
}

static bool
is_meant(const struct slurm_job *job, const void *arg)
{
    const struct scancel *s = arg;

    return !job->state->ended && (!s->name || strcmp(s->name, slurm_name(job)) == 0) &&
           (!s->user || slurm_is_of(job, s->user)) &&
           (!s->partition || slurm_is_listed(s->partition, SLURM_PARTITION)) &&
           (!s->node || (!slurm_is_waiting(job) && slurm_is_here(s->node))) &&
           (!s->state || slurm_state_is(job->state, s->state));
}

/* Select the live jobs that match the filters, of those named or, without names, of all. */
static int
select_jobs(struct scancel *s, struct client *c, json_t *select, struct err *e)
{
    const struct slurm_wish wish = {.select = json_array_size(s->ids) ? s->ids : NULL};
    auto_slurm_jobs struct slurm_jobs jobs = {0};

    if (slurm_jobs_ask(c, &wish, &jobs, e) < 0)
        return -1;
    slurm_jobs_keep(&jobs, is_meant, s);
    for (size_t i = 0; i < jobs.n; i++) {
        const struct slurm_job *job = &jobs.at[i];

        /* Cancel arrays before their tasks, so that no pending task starts in place of a
         * cancelled one. */
        json_array_insert_new(select, job->is_array ? 0 : json_array_size(select),
                              job->tasks && s->state
                                  ? json_sprintf("%lld_[%.*s]", (long long)job->array,
                                                 (int)strcspn(job->tasks, "%"), job->tasks)
                                  : json_sprintf("%lld", (long long)job->id));
    }
    return 0;
}

/* One request per job, so that a missing job does not keep the others from being cancelled. A
 * missing job is an error only for a signal. SIGKILL cancels without grace. */
static int
end_one(struct scancel *s, struct client *c, json_t *word)
{
    json_t *params = json_pack("{s:[O]}", "select", word);
    bool kill = s->signal == SIGKILL && !s->batch;
    const char *method = s->signal && !kill ? "signal" : "cancel";
    struct err e = {0};

    if (kill)
        json_object_set_new(params, "grace_ms", json_integer(0));
    else if (s->signal)
        json_object_set_new(params, "signal", json_integer(s->signal));
    if (s->verbose)
        cli_say("Terminating job %s", json_string_value(word));
    if (client_call(c, method, params, NULL, &e) == 0 || s->quiet ||
        (e.code == ERR_NO_JOB && !s->signal))
        return 0;
    return slurm_fail(1, "Kill job error on job id %s: %s", json_string_value(word),
                      e.code == ERR_NO_JOB ? "Invalid job id specified" : e.text);
}

static int
end_all(struct scancel *s)
{
    auto_client struct client *c = slurm_connect("scancel");
    auto_json json_t *select = json_array();
    struct err e = {0};
    json_t *word;
    size_t i;
    int status = 0;

    if (!c)
        return 1;
    if (is_filtered(s) && select_jobs(s, c, select, &e) < 0 && e.code != ERR_NO_JOB)
        return slurm_fail(1, "%s", e.text);
    if (!is_filtered(s))
        json_array_extend(select, s->ids);
    json_array_foreach(select, i, word)
    {
        if (end_one(s, c, word) != 0)
            status = 1;
    }
    return status;
}

/* A step cannot be cancelled alone, and must not cancel its job. */
static int
take_ids(struct scancel *s, const char *word)
{
    const char *dot = strchr(word, '.');
    struct err e = {0};

    if (dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0')
        return slurm_fail(1,
                          "%s: a step is not cancelled by itself; end the program, or cancel "
                          "job %.*s",
                          word, (int)(dot - word), word);
    if (dot || slurm_read_ids(word, s->ids, NULL, &e) < 0)
        return slurm_fail(1, "Invalid job id %s", word);
    return 0;
}

int
compat_scancel(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "scancel", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct scancel s = {.ids = json_array()};
    int status;
    bool is_read = slurm_read(&r, argc, argv, &s, take_option, &status);

    for (int i = 0; is_read && status == 0 && i < r.n_words; i++)
        status = take_ids(&s, r.words[i]);
    if (is_read && status == 0)
        status = is_filtered(&s) || json_array_size(s.ids) > 0
                     ? end_all(&s)
                     : slurm_fail(1, "No job identification provided");
    json_decref(s.ids);
    return status;
}
