/* scontrol: shows and changes jobs. Keywords may be abbreviated, as in the original. */
#include "compat/slurm/slurm_scontrol.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/request.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_script.h"
#include "compat/slurm/slurm_wait.h"
#include "wire/client.h"

static const char usage[] =
    "Usage: scontrol [-o] [-d] COMMAND\n"
    "\n"
    "  show job [ID], show node, show partition, show config, show hostnames [LIST]\n"
    "  hold LIST, release LIST, requeue LIST, requeuehold LIST, top LIST\n"
    "  update JobId=ID Nice=N, update JobId=ID Priority=0\n"
    "  write batch_script ID [FILE], wait_job ID, ping, version\n"
    "\n"
    "  -o, --oneliner, -d, --details, -Q, --quiet, -a, --all";

enum { OPT_DETAILS };
static const struct slurm_option own[] = {
    [OPT_DETAILS] = {.option = {"details", 'd', TAKES_NOTHING}},
    {.option = {"all", 'a', TAKES_NOTHING}},
    {.option = {"oneliner", 'o', TAKES_NOTHING}, SLURM_INTO(struct scontrol, one_line)},
    {.option = {"quiet", 'Q', TAKES_NOTHING}, SLURM_INTO(struct scontrol, quiet)},
    {.option = {"verbose", 'v', TAKES_NOTHING}},
    {.option = {"clusters", 'M', TAKES_VALUE}},
    {.option = {"federation", 'F', TAKES_NOTHING}},
    {.option = {"future", 0, TAKES_NOTHING}},
    {.option = {"hide", 0, TAKES_NOTHING}},
    {.option = {"local", 0, TAKES_NOTHING}},
    {.option = {"sibling", 0, TAKES_NOTHING}},
    {.option = {"uid", 'u', TAKES_VALUE}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* --- changes --- */

/* Steps such as 12.0 cannot be changed. */
static int
read_jobs(const char *ids, json_t *select, struct err *e)
{
    if (strchr(ids, '.'))
        return err_set(e, ERR_NO_JOB, "%s is a step", ids);
    return slurm_read_ids(ids, select, NULL, e);
}

/* Send one request for a list of jobs; takes over more. Returns 0; 1 after reporting an error;
 * or -1 with *e if the daemon refused. */
static int
request_change(const char *ids, const char *method, json_t *more, struct err *e)
{
    auto_client struct client *c = slurm_connect("scontrol");
    auto_json json_t *params = more ? more : json_object();
    json_t *select = json_array();

    json_object_set_new(params, "select", select);
    if (!c)
        return 1;
    if (read_jobs(ids, select, e) == 0 &&
        client_call(c, method, json_incref(params), NULL, e) == 0)
        return 0;
    if (e->code != ERR_NO_JOB && e->code != ERR_USAGE)
        return -1;
    fprintf(stderr, "Invalid job id specified for job %s\n", ids);
    if (strcmp(method, "hold") == 0 || strcmp(method, "release") == 0)
        fprintf(stderr, "slurm_suspend error: Invalid job id specified\n");
    return 1;
}

static int
change(const char *ids, const char *method, json_t *more)
{
    struct err e = {0};
    int rc = request_change(ids, method, more, &e);

    return rc < 0 ? slurm_fail(1, "%s", e.text) : rc;
}

/* "JobId=12", "jobid=12_3", "12". */
static const char *
id_of(const char *word)
{
    return strncasecmp(word, "job=", 4) == 0     ? word + 4
           : strncasecmp(word, "jobid=", 6) == 0 ? word + 6
                                                 : word;
}

static int
hold(const char *ids)
{
    return change(ids, "hold", NULL);
}

/* True if `has` holds for any of the jobs; false if none is known. */
static bool
any_job(const char *ids, bool (*has)(const struct slurm_job *job, const void *arg))
{
    auto_client struct client *c = slurm_connect("scontrol");
    auto_json json_t *select = json_array();
    const struct slurm_wish wish = {.select = select, .detail = SLURM_WHOLE};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e;

    if (!c || read_jobs(ids, select, &e) < 0 || slurm_jobs_ask(c, &wish, &jobs, &e) < 0)
        return false;
    slurm_jobs_keep(&jobs, has, NULL);
    return jobs.n > 0;
}

static bool
is_held_or_ended(const struct slurm_job *job, const void *arg)
{
    (void)arg;
    return job->state->ended || strcmp(job->state->berth, "HELD") == 0;
}

/* Releasing a job that is not held is not an error in Slurm. */
static int
release(const char *ids)
{
    struct err e = {0};
    int rc = request_change(ids, "release", NULL, &e);

    if (rc < 0)
        rc = e.code != ERR_FAILED || any_job(ids, is_held_or_ended)
                 ? slurm_fail(1, "%s", e.text)
                 : 0;
    return rc;
}

static bool
is_not_to_run_again(const struct slurm_job *job, const void *arg)
{
    (void)arg;
    return !answer_bool(job->json, "requeue");
}

/* A job with --no-requeue must not run twice: it might damage its own output. */
static int
run_again(const char *ids, json_t *more)
{
    if (!any_job(ids, is_not_to_run_again))
        return change(ids, "requeue", more);
    fprintf(stderr, "Requested operation is presently disabled for job %s\n", ids);
    json_decref(more);
    return 1;
}

static int
requeue(const char *ids)
{
    return run_again(ids, NULL);
}

static int
requeuehold(const char *ids)
{
    return run_again(ids, json_pack("{s:b}", "hold", 1));
}

static int
do_top(const struct scontrol *s, char *const *words, int n)
{
    (void)s;
    (void)words;
    (void)n;
    return slurm_fail(1, "top: an order among one's own jobs is their priority; use scontrol "
                         "update JobId=ID Nice=N");
}

/* --- update --- */

/* Slurm's nice value is Berth's priority negated. */
static int
set_nice(const char *ids, const char *value)
{
    int64_t nice = 100;
    struct err e = {0};

    if (value[0] && parse_int(value, -2147483645, 2147483645, &nice, &e) < 0)
        return slurm_fail(1, "Invalid nice value: %s", value);
    nice = nice > PRIORITY_MAX ? PRIORITY_MAX : nice < PRIORITY_MIN ? PRIORITY_MIN : nice;
    return change(ids, "priority", json_pack("{s:I}", "priority", (json_int_t)-nice));
}

/* 0 holds a job; other values are on Slurm's own scale. */
static int
set_priority(const char *ids, const char *value)
{
    if (strcmp(value, "0") == 0)
        return hold(ids);
    return slurm_fail(1,
                      "Priority=%s: the scales differ; use Nice=N, or Priority=0 to hold "
                      "the job",
                      value);
}

static const struct {
    const char *key;
    int (*set)(const char *ids, const char *value);
} settings[] = {{"Nice", set_nice}, {"Priority", set_priority}};

static int
set_one(const char *ids, const char *word)
{
    size_t n = strcspn(word, "=+-");
    const char *value = word + n + (word[n] != '\0');

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strlen(settings[i].key) == n && strncasecmp(settings[i].key, word, n) == 0)
            return settings[i].set(ids, value);
    fprintf(stderr,
            "Update of this parameter is not supported: %s\n"
            "Request aborted\n",
            word);
    return 1;
}

static int
do_update(const struct scontrol *s, char *const *words, int n)
{
    const char *ids = NULL;
    int status = 0;

    (void)s;
    for (int i = 0; i < n; i++)
        if (id_of(words[i]) != words[i])
            ids = id_of(words[i]);
    if (!ids)
        return slurm_fail(1, "update: only jobs can be changed: update JobId=12 Nice=10");
    for (int i = 0; status == 0 && i < n; i++)
        if (id_of(words[i]) == words[i])
            status = set_one(ids, words[i]);
    return status;
}

/* --- others --- */

static int
do_ping(const struct scontrol *s, char *const *words, int n)
{
    auto_client struct client *c = slurm_connect("scontrol");

    (void)s;
    (void)words;
    (void)n;
    printf("Slurmctld(primary) at %s is %s\n", slurm_node(), c ? "UP" : "DOWN");
    return c ? 0 : 1;
}

static int
do_wait(const struct scontrol *s, char *const *words, int n)
{
    int64_t id;
    struct err e = {0};

    (void)s;
    (void)n;
    if (parse_int(words[0], 1, UINT32_MAX, &id, &e) < 0)
        return slurm_fail(1, "Invalid job id %s", words[0]);
    return slurm_wait_until_ready(id);
}

/* NULL: no such job, or it does not run a script of sbatch. */
static char *
find_script(const char *ids)
{
    auto_client struct client *c = slurm_connect("scontrol");
    auto_json json_t *select = json_array();
    const struct slurm_wish wish = {.select = select, .detail = SLURM_WHOLE};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    struct err e = {0};

    if (!c || slurm_read_ids(ids, select, NULL, &e) < 0 ||
        slurm_jobs_ask(c, &wish, &jobs, &e) < 0 || jobs.n == 0)
        return NULL;
    return slurm_kept_script(answer_str(jobs.at[0].json, "command"));
}

static int
do_write(const struct scontrol *s, char *const *words, int n)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = NULL, *name = n > 1 ? xasprintf("slurm-%s.sh", words[1]) : NULL;
    struct err e = {0};

    if (n < 2 || strcasecmp(words[0], "batch_script") != 0)
        return slurm_fail(1, "write batch_script ID [FILE]");
    path = find_script(words[1]);
    if (!path || file_read(path, SLURM_SCRIPT_MAX, &text, &e) < 0)
        return slurm_fail(1, "job script retrieval failed: %s",
                          e.text[0] ? e.text : "Invalid job id specified");
    if (n > 2 && strcmp(words[2], "-") == 0)
        return cli_put(&text);
    if (file_write_atomic_at(AT_FDCWD, n > 2 ? words[2] : name, text.data, text.len, 0600,
                             false, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    if (!s->quiet)
        printf("batch script for job %s written to %s\n", words[1], n > 2 ? words[2] : name);
    return 0;
}

static int
do_version(const struct scontrol *s, char *const *words, int n)
{
    (void)s;
    (void)words;
    (void)n;
    printf("slurm-wlm " SLURM_RELEASE " (berth " BERTH_VERSION ")\n");
    return 0;
}

static const struct {
    const char *name;
    int shortest; /* length of the shortest abbreviation */
    int words;    /* least number of arguments */
    int (*run)(const struct scontrol *s, char *const *words, int n);
    int (*change)(const char *ids); /* instead of run: called once per argument */
} keywords[] = {
    {"show", 2, 1, scontrol_show, NULL}, {"hold", 2, 1, NULL, hold},
    {"uhold", 2, 1, NULL, hold},         {"release", 3, 1, NULL, release},
    {"requeue", 4, 1, NULL, requeue},    {"requeuehold", 8, 1, NULL, requeuehold},
    {"update", 2, 1, do_update, NULL},   {"top", 1, 1, do_top, NULL},
    {"ping", 2, 0, do_ping, NULL},       {"version", 4, 0, do_version, NULL},
    {"wait_job", 4, 1, do_wait, NULL},   {"write", 2, 1, do_write, NULL},
};

static int
change_all(int (*one)(const char *ids), char *const *words, int n)
{
    int status = 0;

    for (int i = 0; i < n; i++)
        if (one(id_of(words[i])) != 0)
            status = 1;
    return status;
}

static int
run(const struct scontrol *s, char **words, int n)
{
    size_t len = strlen(words[0]);

    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (len < (size_t)keywords[i].shortest ||
            strncasecmp(keywords[i].name, words[0], len) != 0)
            continue;
        if (n - 1 >= keywords[i].words)
            return keywords[i].run ? keywords[i].run(s, words + 1, n - 1)
                                   : change_all(keywords[i].change, words + 1, n - 1);
        fprintf(stderr, "too few arguments for keyword:%s\n", words[0]);
        return 1;
    }
    fprintf(stderr, "invalid keyword: %s\n", words[0]);
    return 1;
}

/* -d may be repeated for more details. */
static int
take_option(void *into, struct slurm_reader *r, int opt)
{
    struct scontrol *s = into;

    (void)r;
    s->details += opt == OPT_DETAILS;
    return 0;
}

int
compat_scontrol(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "scontrol", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct scontrol s = {0};
    int status;

    if (!slurm_read(&r, argc, argv, &s, take_option, &status))
        return status;
    return r.n_words > 0 ? run(&s, r.words, r.n_words)
                         : slurm_fail(1, "which command? scontrol show job 12");
}
