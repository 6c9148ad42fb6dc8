/* Detects text that looks like attributes and would run as shell: a second block after the
 * first, and `vram=8G true` without brackets. Called by jobsfile.c with the command of a
 * line. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/jobsfile_priv.h"

/* Common names of shell variables that are also attributes; as attributes they accept any
 * text. */
static bool
is_usual_variable(const char *name)
{
    static const char *const usual[] = {"after", "chdir", "comment", "conda", "env",
                                        "error", "log",   "name",    "tag",   NULL};
    int i = 0;

    while (usual[i] && strcmp(usual[i], name) != 0)
        i++;
    return usual[i] != NULL;
}

/* The attribute named by the first n bytes, in lower case; NULL: none. */
static const struct attr *
find(const char *s, size_t n)
{
    auto_free char *name = xstrndup(s, n);
    const struct attr *a = n > 0 ? attr_find(name, ATTR_JOBS_FILE | ATTR_COMMAND_LINE) : NULL;

    return a && strcspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == n ? a : NULL;
}

/* True if the command begins with NAME=VALUE, where NAME is an attribute that accepts
 * VALUE. */
static bool
is_assignment(const struct parser *p, const char *s, size_t n)
{
    size_t name = strcspn(s, "= \t"), end = strcspn(s, " \t");
    const struct attr *a = name < n && s[name] == '=' ? find(s, name) : NULL;
    auto_free char *value = a && end < n ? xstrndup(s + name + 1, end - name - 1) : NULL;
    struct request scratch;
    struct err e;
    bool fits;

    if (!value || is_usual_variable(a->name))
        return false;
    request_begin(&scratch);
    fits = attr_set_at(&scratch, a->name, value,
                       a->doors & ATTR_JOBS_FILE ? ATTR_JOBS_FILE : ATTR_COMMAND_LINE, p->clock,
                       &e) == 0;
    request_free(&scratch);
    return fits;
}

bool
jobsfile_is_slip(struct parser *p, const char *command, size_t at, bool behind_block)
{
    size_t n = strlen(command), name = strcspn(command, "= \t]");

    if (behind_block && command[0] == '[' && (name = strcspn(command + 1, "= \t]")) > 0 &&
        find(command + 1, name)) {
        jobsfile_report_at(p, at,
                           "a second [ of attributes; put all attributes into the first, as in "
                           "[vram=8G gpus=1] command; if it is shell, write [] before it");
        return true;
    }
    if (!is_assignment(p, command, n))
        return false;
    jobsfile_report_at(p, at,
                       "%.*s=... looks like an attribute without brackets; write [%.*s] before "
                       "the command, or env %.*s to set a variable",
                       (int)name, command, (int)strcspn(command, " \t"), command,
                       (int)strcspn(command, " \t"), command);
    return true;
}
