/* Maps paths to routes: see route.h. */
#include "web/route.h"

#include <string.h>

#include "base/parse.h"

static const struct {
    const char *path;
    struct route route;
} fixed[] = {
    {"/", {.kind = ROUTE_PAGE, .query = QUERY_OVERVIEW}},
    {"/history", {.kind = ROUTE_PAGE, .query = QUERY_HISTORY}},
    {"/report", {.kind = ROUTE_PAGE, .query = QUERY_REPORT}},
    {"/login", {.kind = ROUTE_LOGIN, .is_open = true}},
    {"/logout", {.kind = ROUTE_LOGOUT, .is_open = true}},
    {"/metrics", {.kind = ROUTE_DATA, .query = QUERY_METRICS}},
    {"/health", {.kind = ROUTE_DATA, .query = QUERY_HEALTH}},
    {"/api/v1/overview", {.kind = ROUTE_DATA, .query = QUERY_OVERVIEW}},
    {"/api/v1/status", {.kind = ROUTE_DATA, .query = QUERY_STATUS}},
    {"/api/v1/gpus", {.kind = ROUTE_DATA, .query = QUERY_GPUS}},
    {"/api/v1/queue", {.kind = ROUTE_DATA, .query = QUERY_QUEUE}},
    {"/api/v1/history", {.kind = ROUTE_DATA, .query = QUERY_HISTORY}},
    {"/api/v1/series", {.kind = ROUTE_DATA, .query = QUERY_SERIES}},
    {"/api/v1/report", {.kind = ROUTE_DATA, .query = QUERY_REPORT}},
    {"/api/v1/health", {.kind = ROUTE_DATA, .query = QUERY_HEALTH}},
    {"/api/v1/events", {.kind = ROUTE_EVENTS}},
};

/* Paths that follow a job's number. */
static const struct {
    const char *prefix, *suffix;
    struct route route;
} of_job[] = {
    {"/jobs/", "", {.kind = ROUTE_PAGE, .query = QUERY_JOB}},
    {"/api/v1/jobs/", "", {.kind = ROUTE_DATA, .query = QUERY_JOB}},
    {"/api/v1/jobs/", "/series", {.kind = ROUTE_DATA, .query = QUERY_JOB_SERIES}},
    {"/api/v1/jobs/", "/log", {.kind = ROUTE_LOG, .query = QUERY_JOB}},
};

/* "12/series": the number and the rest. */
static bool
split_number(const char *s, int64_t *out, const char **rest)
{
    char digits[12];
    size_t n = strspn(s, "0123456789");

    if (n == 0 || n >= sizeof digits)
        return false;
    memcpy(digits, s, n);
    digits[n] = '\0';
    *rest = s + n;
    return parse_int(digits, 1, UINT32_MAX, out, NULL) == 0;
}

void
route_find(const char *path, struct route *out)
{
    int64_t job;
    const char *rest;

    *out = (struct route){.kind = ROUTE_NONE};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(path, fixed[i].path) == 0) {
            *out = fixed[i].route;
            return;
        }
    for (size_t i = 0; i < sizeof of_job / sizeof of_job[0]; i++) {
        size_t n = strlen(of_job[i].prefix);
        if (strncmp(path, of_job[i].prefix, n) == 0 && split_number(path + n, &job, &rest) &&
            strcmp(rest, of_job[i].suffix) == 0) {
            *out = of_job[i].route;
            out->job = job;
            return;
        }
    }
    if (strncmp(path, "/assets/", 8) == 0)
        *out = (struct route){.kind = ROUTE_ASSET, .asset = path + 8, .is_open = true};
    else if (strcmp(path, "/favicon.ico") == 0)
        *out = (struct route){.kind = ROUTE_ASSET, .asset = "icon.svg", .is_open = true};
}
