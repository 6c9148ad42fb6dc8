/* Bounds on one request: see budget.h. Called by all code that reads or answers requests. */
#include "daemon/request/budget.h"

#include "base/err.h"
#include "base/jsonw.h"
#include "spec/config.h"
#include "wire/frame.h"

#define VALUES_MAX      200000  /* JSON values in one line */
#define VALUES_MAX_OWN  8000000 /* if no other user has to wait */
#define DEPTH_MAX       32
#define JOBS_MAX        1000
#define DEPENDENCES_MAX 4000               /* of all jobs of a request: each is looked up */
#define SUBMIT_TEXT_MAX (INT64_C(2) << 20) /* bytes: written in one commit */

bool
budget_binds(const struct budget *b, uid_t uid)
{
    return b->system && uid != 0;
}

size_t
budget_request_max(const struct budget *b, uid_t uid)
{
    return budget_binds(b, uid) ? (size_t)b->config->request_max_mib << 20 : FRAME_MAX_CLIENT;
}

size_t
budget_answer_max(const struct budget *b, uid_t uid)
{
    return budget_binds(b, uid) ? (size_t)b->config->answer_max_mib << 20 : UNREAD_MAX;
}

int
budget_too_long(const struct jsonw *answer, struct err *e)
{
    return err_set(
        e, ERR_REFUSED,
        "the answer would exceed the maximum of %zu MiB; request fewer jobs or fields",
        answer->max >> 20);
}

struct shape {
    size_t values; /* upper bound on the values in the line */
    int depth, deepest;
};

/* Skips the string that begins at *at. */
static void
skip_string(const char *line, size_t len, size_t *at)
{
    for (++*at; *at < len && line[*at] != '"'; ++*at)
        *at += line[*at] == '\\';
}

static struct shape
measure(const char *line, size_t len, size_t values_max)
{
    struct shape s = {.values = 1};
    for (size_t i = 0; i < len && s.values <= values_max && s.deepest <= DEPTH_MAX; i++) {
        switch (line[i]) {
        case '"':
            skip_string(line, len, &i);
            break;
        case '[':
        case '{':
            s.values++;
            if (++s.depth > s.deepest)
                s.deepest = s.depth;
            break;
        case ']':
        case '}':
            s.depth--;
            break;
        case ',':
        case ':':
            s.values++;
            break;
        default:
            break;
        }
    }
    return s;
}

int
budget_check_line(const struct budget *b, uid_t uid, const char *line, size_t len,
                  struct err *e)
{
    size_t most = budget_binds(b, uid) ? VALUES_MAX : VALUES_MAX_OWN;
    struct shape s = measure(line, len, most);
    if (s.values > most)
        return err_set(e, ERR_REFUSED,
                       "the request exceeds the maximum of %zu values; split it", most);
    if (s.deepest > DEPTH_MAX)
        return err_set(e, ERR_REFUSED, "the request is nested more than %d deep", DEPTH_MAX);
    return 0;
}

int
budget_check_jobs(const struct budget *b, uid_t uid, const json_t *jobs, struct err *e)
{
    size_t i, n = json_array_size(jobs), n_after = 0;
    const json_t *job;
    if (!budget_binds(b, uid))
        return 0;
    if (n > JOBS_MAX)
        return err_set(
            e, ERR_REFUSED,
            "the request has %zu jobs, and the maximum is %d; split it, or submit an array", n,
            JOBS_MAX);
    json_array_foreach(jobs, i, job) n_after += json_array_size(json_object_get(job, "after"));
    if (n_after <= DEPENDENCES_MAX)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "the jobs of the request wait for %zu others, and the maximum is %d; split the request",
        n_after, DEPENDENCES_MAX);
}

int
budget_check_submit(const struct budget *b, uid_t uid, int64_t bytes, struct err *e)
{
    int64_t most = b->config->job_max_text_kib << 10;
    if (most < SUBMIT_TEXT_MAX)
        most = SUBMIT_TEXT_MAX;
    if (!budget_binds(b, uid) || bytes <= most)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "the commands and other text of the request's jobs exceed the maximum of "
                   "%lld KiB; split it",
                   (long long)most >> 10);
}

static int
check_bytes(const struct budget *b, uid_t uid, size_t bytes, const char *what, struct err *e)
{
    if (!budget_binds(b, uid) || bytes <= (size_t)b->config->job_max_text_kib << 10)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "%s has %zu KiB, and the maximum is %lld (job_max_text_kib); put long texts into files",
        what, bytes >> 10, (long long)b->config->job_max_text_kib);
}

int
budget_check_text(const struct budget *b, uid_t uid, const struct request *r, struct err *e)
{
    return check_bytes(b, uid, (size_t)request_text_bytes(r), "its command", e);
}

int
budget_check_env(const struct budget *b, uid_t uid, size_t bytes, struct err *e)
{
    return check_bytes(b, uid, bytes, "the environment", e);
}
