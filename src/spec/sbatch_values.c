/* Values of sbatch's options that an attribute reads differently or not at all: empty values,
 * a limit of 0, the one node and the one cluster, files, dependencies; also the errors for
 * what cannot be honoured. Called by sbatch.c. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/script_priv.h"
#include "spec/value.h"

#define MINUTE_MS 60000
#define DAY_HOURS 24
#define WIDTH_MAX 9 /* digits of a node's number */

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

/* The number between begin and end; -1: not a number, or more than nine digits. */
static int
number_in(const char *begin, const char *end)
{
    int number = 0;

    if (begin == end || end - begin > WIDTH_MAX)
        return -1;
    for (; begin < end; begin++) {
        if (*begin < '0' || *begin > '9')
            return -1;
        number = number * 10 + (*begin - '0');
    }
    return number;
}

/* True for Slurm's values for no limit: "0", "00:00", "0-0", "-1". */
static bool
is_unlimited(const char *value)
{
    return strcasecmp(value, "UNLIMITED") == 0 || strcasecmp(value, "INFINITE") == 0 ||
           strcmp(value, "-1") == 0 || (value[0] == '0' && !value[strspn(value, "0:-")]);
}

/* Slurm adds up the fields of D-[H[:M[:S]]], H:M:S and M:S, however large each is. -1: none of
 * these forms. */
static int64_t
seconds_of(const char *value)
{
    const char *dash = strchr(value, '-'), *p = dash ? dash + 1 : value;
    int64_t days = dash ? number_in(value, dash) : 0, fields[3] = {0};
    bool more = !dash || *p;
    int n = 0;

    while (more) {
        size_t size = strspn(p, "0123456789");
        int field = n < 3 ? number_in(p, p + size) : -1;

        if (field < 0 || (p[size] && p[size] != ':'))
            return -1;
        fields[n++] = field;
        more = p[size] == ':';
        p += size + more;
    }
    if (days < 0 || (!dash && n == 1))
        return -1;
    if (!dash && n == 2)
        return fields[0] * 60 + fields[1];
    return ((days * DAY_HOURS + fields[0]) * 60 + fields[1]) * 60 + fields[2];
}

/* As in Slurm, limits are in minutes and rounded up. */
int
sbatch_set_time(struct sbatch *s, const char *value, struct err *e)
{
    int64_t seconds = seconds_of(value), ms = 0;
    auto_free char *sum = seconds > 0 ? xasprintf("%llds", (long long)seconds) : NULL;

    if (!is_unlimited(value) && parse_duration_ms(sum ? sum : value, MINUTE_MS, &ms, e) < 0)
        return sum ? parse_refuse(e, value, "is too long for a time limit") : -1;
    s->r->limit_ms = (ms + MINUTE_MS - 1) / MINUTE_MS * MINUTE_MS;
    return 0;
}

/* An empty value, such as from "$UNSET", clears the field. */
static int
set_text(struct sbatch *s, char **field, const char *attr, const char *value, struct err *e)
{
    if (value[0])
        return sbatch_set(s, attr, value, e);
    free(*field);
    *field = NULL;
    return 0;
}

int
sbatch_set_name(struct sbatch *s, const char *value, struct err *e)
{
    return set_text(s, &s->r->name, "name", value, e);
}

int
sbatch_set_comment(struct sbatch *s, const char *value, struct err *e)
{
    return set_text(s, &s->r->comment, "comment", value, e);
}

/* "1-3, 5", "[1-3]%2"; no number, or 0, after the % means no limit. */
int
sbatch_set_array(struct sbatch *s, const char *value, struct err *e)
{
    auto_buf struct buf tasks = BUF_INIT;
    const char *skipped = value[0] == '[' ? " \t[]" : " \t";
    const char *most = strchr(value, '%');

    if (!value[0]) {
        task_set_free(&s->r->array);
        s->r->array_max = 0;
        return 0;
    }
    if (most && most[1 + strspn(most + 1, "0")])
        most = NULL;
    for (const char *p = value; *p && p != most; p++)
        if (!strchr(skipped, *p))
            buf_addc(&tasks, *p);
    return sbatch_set(s, "array", buf_str(&tasks), e);
}

bool
script_node_is(const char *word, const char *host)
{
    size_t n = strcspn(word, ".");

    return strcasecmp(word, "localhost") == 0 ||
           (n > 0 && strlen(host) == n && strncasecmp(word, host, n) == 0);
}

/* True if "07" is in "01-03,07"; digits are compared with their width, so 7 is not. */
static bool
is_in_ranges(const char *digits, size_t n, const char *ranges, const char *end)
{
    int number = number_in(digits, digits + n);

    while (number >= 0 && ranges < end) {
        size_t size = strcspn(ranges, ",]"), first = strspn(ranges, "0123456789");
        const char *high = ranges[first] == '-' ? ranges + first + 1 : ranges;
        int low = number_in(ranges, ranges + first);
        bool is_wide = n == first || (n > first && digits[0] != '0');

        if (low >= 0 && is_wide && number >= low && number <= number_in(high, ranges + size))
            return true;
        ranges += size + (ranges + size < end);
    }
    return false;
}

/* True if the first n bytes of word, an entry of a list of nodes such as gpu-node[01-03,07],
 * name host. */
static bool
names_node(const char *word, size_t n, const char *host)
{
    auto_free char *name = xstrndup(word, n);
    const char *open = strchr(name, '['), *shut = open ? strchr(open, ']') : NULL;
    size_t before = open ? (size_t)(open - name) : 0;

    if (!shut)
        return script_node_is(name, host);
    if (strncasecmp(host, name, before) != 0)
        return false;
    size_t digits = strspn(host + before, "0123456789");
    return strcasecmp(host + before + digits, shut + 1) == 0 &&
           is_in_ranges(host + before, digits, open + 1, shut);
}

/* Excluding other machines has no effect, as the job never runs there. */
int
sbatch_set_excluded(struct sbatch *s, const char *value, struct err *e)
{
    for (const char *p = value; *p;) {
        size_t n = 0;
        for (bool inside = false; p[n] && (inside || p[n] != ','); n++)
            inside = p[n] == '[' || (inside && p[n] != ']');
        if (!s->host || names_node(p, n, s->host))
            return sbatch_refuse(e, "%s: there is one machine%s%s", value, s->host ? ", " : "",
                                 s->host ? s->host : "");
        p += n + (p[n] == ',');
    }
    script_ignore(s->out, "exclude");
    return 0;
}

/* The job needs all nodes of the list, so each of them must be this one. */
int
sbatch_set_nodes_by_name(struct sbatch *s, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    char *rest = copy, *word;

    while (value[0] && (word = strsep(&rest, ",")))
        if (!s->host || !script_node_is(word, s->host))
            return sbatch_refuse(e, "%s: there is one machine%s%s", value, s->host ? ", " : "",
                                 s->host ? s->host : "");
    return 0;
}

/* Of several clusters, one that fits is enough. */
int
sbatch_set_clusters(struct sbatch *s, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    char *rest = copy, *word;

    (void)s;
    while ((word = strsep(&rest, ",")))
        if (strcasecmp(word, SCRIPT_CLUSTER) == 0 || strcasecmp(word, "all") == 0)
            return 0;
    return sbatch_refuse(e, "%s is not here; the one cluster is " SCRIPT_CLUSTER, value);
}

/* --- files --- */

static bool
is_no_file(const char *value)
{
    return strcasecmp(value, "none") == 0;
}

/* A backslash anywhere disables all % letters; each backslash only escapes the next
 * character. */
static void
add_literally(const char *value, struct buf *out)
{
    for (const char *p = value; *p; p++) {
        p += *p == '\\';
        if (!*p)
            break;
        buf_adds(out, *p == '%' ? "%" : "");
        buf_addc(out, *p);
    }
}

/* A file for output or errors. Berth has the same letters as Slurm, except three for steps,
 * tasks and nodes: a job of one task on one node has a fixed value for each. */
static int
set_file(struct sbatch *s, const char *attr, const char *value, struct err *e)
{
    auto_buf struct buf file = BUF_INIT;
    bool is_literal = strchr(value, '\\') != NULL;

    if (is_no_file(value))
        return sbatch_set(s, attr, "/dev/null", e);
    if (is_literal)
        add_literally(value, &file);
    for (const char *p = is_literal ? "" : value; *p; p++) {
        size_t width = *p == '%' ? strspn(p + 1, "0123456789") : 0;
        char letter = *p == '%' ? p[width + 1] : '\0';

        if (*p != '%') {
            buf_addc(&file, *p);
        } else if (!letter || !strchr("jJAaxuNnts%", letter)) {
            return sbatch_refuse(e,
                                 "%%%.1s is not supported; use %%j, %%A, %%a, %%x, %%u and %%N",
                                 p + width + 1);
        } else {
            if (letter == 'n' || letter == 't')
                buf_addc(&file, '0');
            else if (letter == 's')
                buf_adds(&file, "batch");
            else
                buf_add(&file, p, width + 2);
            p += width + 1;
        }
    }
    return sbatch_set(s, attr, buf_str(&file), e);
}

int
sbatch_set_output(struct sbatch *s, const char *value, struct err *e)
{
    return set_file(s, "log", value, e);
}

int
sbatch_set_error(struct sbatch *s, const char *value, struct err *e)
{
    return set_file(s, "error", value, e);
}

int
sbatch_set_input(struct sbatch *s, const char *value, struct err *e)
{
    (void)s;
    if (strcmp(value, "/dev/null") == 0 || is_no_file(value))
        return 0;
    return sbatch_refuse(e, "standard input is /dev/null; redirect it in the script: < %s",
                         value);
}

/* --- dependencies --- */

/* "12:13_2", the jobs of one dependency type. */
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

    if (strcasecmp(term, "singleton") == 0) {
        s->r->singleton = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].prefix);
        if (strncasecmp(term, types[i].prefix, n) == 0)
            return add_deps(s, types[i].type, term + n, e);
    }
    return sbatch_refuse(
        e, "%s: only afterok, afterany, afternotok and singleton are supported", term);
}

static void
drop_deps(struct request *r)
{
    for (int i = 0; i < r->n_deps; i++)
        free(r->deps[i].name);
    r->n_deps = 0;
}

/* A bare number means afterany, alone and in afterany:12,13. */
static bool
is_bare(const char *term, const char *before)
{
    return term[0] && !term[strspn(term, "0123456789_")] &&
           (!before || strncasecmp(before, "afterany:", 9) == 0);
}

/* Replaces "12_*" by "12": all tasks of the array. */
static char *
without_stars(const char *value)
{
    auto_buf struct buf text = BUF_INIT;

    for (const char *p = value; *p; p++) {
        if (p[0] == '_' && p[1] == '*')
            p++;
        else
            buf_addc(&text, *p);
    }
    return xstrdup(buf_str(&text));
}

int
sbatch_set_deps(struct sbatch *s, const char *value, struct err *e)
{
    auto_free char *copy = without_stars(value);
    char *rest = copy, *term;
    const char *before = NULL;

    drop_deps(s->r);
    s->r->singleton = false;
    if (!value[0])
        return 0;
    if (strchr(value, '?'))
        return sbatch_refuse(e, "one of several (?) is not supported, only all of them (,)");
    while ((term = strsep(&rest, ","))) {
        bool bare = is_bare(term, before);
        int rc = bare ? add_deps(s, DEP_ANY, term, e) : one_dependency(s, term, e);

        if (rc != 0)
            return rc;
        before = bare ? before : term;
    }
    return 0;
}
