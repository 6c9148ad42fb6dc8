/* sbatch's --dependency, and the words for what cannot be honoured. Called by sbatch.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/script_priv.h"
#include "spec/value.h"

int
sbatch_refuse(struct err *e, const char *fmt, ...)
{
    auto_buf struct buf words = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&words, fmt, ap);
    va_end(ap);
    err_set(e, ERR_USAGE, "%s", buf_str(&words));
    return 1;
}

/* "12:13_2", the jobs behind one type. */
static int
add_deps(struct sbatch *s, enum dep_type type, const char *ids, struct err *e)
{
    auto_free char *list = xstrdup(ids);

    if (strchr(ids, '+'))
        return sbatch_refuse(e, "%s: a delay after + is not supported", ids);
    if (!ids[0] || ids[strspn(ids, "0123456789_:")])
        return err_set(e, ERR_USAGE, "'%.60s' are not jobs; write afterok:12:13", ids);
    for (char *p = list; *p; p++)
        if (*p == ':')
            *p = ',';
    return value_deps(list, type, &s->r->deps, &s->r->n_deps, e);
}

static int
one_dependency(struct sbatch *s, const char *term, struct err *e)
{
    static const struct {
        const char *prefix;
        enum dep_type type;
    } types[] = {
        {"afterok:", DEP_SUCCESS}, {"afterany:", DEP_ANY}, {"afternotok:", DEP_FAILED}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].prefix);
        if (strncasecmp(term, types[i].prefix, n) == 0)
            return add_deps(s, types[i].type, term + n, e);
    }
    return sbatch_refuse(e, "%s: only afterok, afterany and afternotok are supported", term);
}

static void
drop_deps(struct request *r)
{
    for (int i = 0; i < r->n_deps; i++)
        free(r->deps[i].name);
    r->n_deps = 0;
}

int
sbatch_set_deps(struct sbatch *s, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    char *rest = copy, *term;

    drop_deps(s->r);
    if (strchr(value, '?'))
        return sbatch_refuse(e, "one of several (?) is not supported, only all of them (,)");
    while ((term = strsep(&rest, ","))) {
        int rc = one_dependency(s, term, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}
