/* scancel: ends jobs, or sends them a signal. */
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

enum {
    OPT_ACCOUNT,
    OPT_BATCH,
    OPT_CTLD,
    OPT_FULL,
    OPT_HURRY,
    OPT_INTERACTIVE,
    OPT_ME,
    OPT_CLUSTERS,
    OPT_NAME,
    OPT_PARTITION,
    OPT_QOS,
    OPT_QUIET,
    OPT_RESERVATION,
    OPT_SIGNAL,
    OPT_STATE,
    OPT_USER,
    OPT_VERBOSE,
    OPT_NODES,
    OPT_WCKEY,
};
static const struct script_option own[] = {
    [OPT_ACCOUNT] = {"account", 'A', TAKES_VALUE},
    [OPT_BATCH] = {"batch", 'b', TAKES_NOTHING},
    [OPT_CTLD] = {"ctld", 0, TAKES_NOTHING},
    [OPT_FULL] = {"full", 'f', TAKES_NOTHING},
    [OPT_HURRY] = {"hurry", 'H', TAKES_NOTHING},
    [OPT_INTERACTIVE] = {"interactive", 'i', TAKES_NOTHING},
    [OPT_ME] = {"me", 0, TAKES_NOTHING},
    [OPT_CLUSTERS] = {"clusters", 'M', TAKES_VALUE},
    [OPT_NAME] = {"name", 'n', TAKES_VALUE},
    [OPT_PARTITION] = {"partition", 'p', TAKES_VALUE},
    [OPT_QOS] = {"qos", 'q', TAKES_VALUE},
    [OPT_QUIET] = {"quiet", 'Q', TAKES_NOTHING},
    [OPT_RESERVATION] = {"reservation", 'R', TAKES_VALUE},
    [OPT_SIGNAL] = {"signal", 's', TAKES_VALUE},
    [OPT_STATE] = {"state", 't', TAKES_VALUE},
    [OPT_USER] = {"user", 'u', TAKES_VALUE},
    [OPT_VERBOSE] = {"verbose", 'v', TAKES_NOTHING},
    [OPT_NODES] = {"nodelist", 'w', TAKES_VALUE},
    [OPT_WCKEY] = {"wckey", 0, TAKES_VALUE},
    {NULL, 0, TAKES_NOTHING},
};

struct scancel {
    json_t *ids; /* owned */
    const char *name, *node, *partition, *state, *user;
    int signal; /* 0: cancel */
    bool batch, filtered, quiet, verbose;
};

/* Whether the option chooses among the caller's jobs; is_meant tests each of these. */
static bool
is_filter(int opt)
{
    return opt == OPT_ME || opt == OPT_NAME || opt == OPT_STATE || opt == OPT_USER ||
           opt == OPT_PARTITION || opt == OPT_NODES;
}

/* What jobs on one machine do not have fits none of them. */
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
take_filter(struct scancel *s, const struct slurm_reader *r, int opt)
{
    s->filtered = true;
    if (opt == OPT_ME) {
        s->user = slurm_own_name();
    } else if (opt == OPT_NAME) {
        s->name = r->value;
    } else if (opt == OPT_NODES) {
        s->node = r->value;
    } else if (opt == OPT_PARTITION) {
        s->partition = r->value;
    } else if (opt == OPT_STATE) {
        if (!slurm_is_state(r->value))
            return slurm_fail(1, "Invalid job state: %s", r->value);
        s->state = r->value;
    } else if (opt == OPT_USER) {
        s->user = r->value;
        if (!slurm_is_user(r->value))
            return slurm_fail(1, "Invalid user name: %s", r->value);
    }
    return 0;
}

static int
take_option(struct scancel *s, const struct slurm_reader *r, int opt)
{
    if (is_filter(opt))
        return take_filter(s, r, opt);
    if (opt == OPT_ACCOUNT || opt == OPT_QOS || opt == OPT_RESERVATION || opt == OPT_WCKEY)
        return refuse_filter(r);
    if (opt == OPT_CLUSTERS && !slurm_is_listed(r->value, SLURM_CLUSTER))
        return slurm_fail(1, "--clusters: %s is not here; the one cluster is " SLURM_CLUSTER,
                          r->value);
    if (opt == OPT_INTERACTIVE)
        return slurm_fail(1, "--interactive: nothing is asked here; name the jobs");
    if (opt == OPT_SIGNAL)
        return take_signal(s, r->value);
    s->batch |= opt == OPT_BATCH;
    s->quiet |= opt == OPT_QUIET;
    s->verbose |= opt == OPT_VERBOSE;
    return 0;
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

/* The jobs that the options fit, among those that are named or all. With options alone root
 * does not mean everybody's jobs. */
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

        /* Arrays first, so that no task starts in the place of one that ends. */
        json_array_insert_new(select, job->is_array ? 0 : json_array_size(select),
                              job->tasks && s->state
                                  ? json_sprintf("%lld_[%.*s]", (long long)job->array,
                                                 (int)strcspn(job->tasks, "%"), job->tasks)
                                  : json_sprintf("%lld", (long long)job->id));
    }
    return 0;
}

/* One request for each word, so that one that is gone does not save the others. A job that is
 * gone need not be cancelled, but cannot get a signal. SIGKILL cancels: at once. */
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
    if (s->filtered && select_jobs(s, c, select, &e) < 0 && e.code != ERR_NO_JOB)
        return slurm_fail(1, "%s", e.text);
    if (!s->filtered)
        json_array_extend(select, s->ids);
    json_array_foreach(select, i, word)
    {
        if (end_one(s, c, word) != 0)
            status = 1;
    }
    return status;
}

/* A step cannot be ended by itself, and must not end its job. */
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
    if (dot || slurm_read_ids(word, s->ids, &e) < 0)
        return slurm_fail(1, "Invalid job id %s", word);
    return 0;
}

int
compat_scancel(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "scancel", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct scancel s = {.ids = json_array()};
    int opt = 0, status = 0, n;
    char **words;

    slurm_begin(&r, argc, argv);
    while (status == 0 && (opt = slurm_next(&r)) >= 0)
        status = take_option(&s, &r, opt);
    words = slurm_words(&r, &n);
    for (int i = 0; status == 0 && opt == SLURM_DONE && i < n; i++)
        status = take_ids(&s, words[i]);
    if (opt == SLURM_EXIT)
        status = r.status;
    else if (status == 0 && !s.filtered && json_array_size(s.ids) == 0)
        status = slurm_fail(1, "No job identification provided");
    else if (status == 0)
        status = end_all(&s);
    slurm_end(&r);
    json_decref(s.ids);
    return status;
}
