/* Values specific to attributes; see value.h. Called by attr_set.c, script.c, and by the
 * daemon for values in the same form from the socket. */
#include "spec/value.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "spec/attr.h"

int
value_check_text(const char *s, size_t max, struct err *e)
{
    size_t n = strlen(s);

    if (n == 0)
        return err_set(e, ERR_USAGE, "must not be empty");
    if (n > max)
        return err_set(e, ERR_USAGE, "is %zu bytes long; the maximum is %zu", n, max);
    if (!text_is_utf8(s, n, NULL))
        return err_set(e, ERR_USAGE, "is not UTF-8 text");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return err_set(e, ERR_USAGE, "holds a control character");
    return 0;
}

int
value_check_env(const char *s, struct err *e)
{
    size_t n = strlen(s);
    auto_buf struct buf shown = BUF_INIT;

    text_add_safe(&shown, s, strcspn(s, "="), 60);
    if (s[0] == '=' || !strchr(s, '='))
        return err_set(e, ERR_USAGE, "'%s' is not NAME=value", buf_str(&shown));
    if (n >= ENV_MAX_BYTES)
        return err_set(e, ERR_USAGE, "%s is %zu bytes long; the maximum is %d", buf_str(&shown),
                       n, ENV_MAX_BYTES - 1);
    if (!text_is_utf8(s, n, NULL))
        return err_set(e, ERR_USAGE, "%s is not UTF-8 and cannot be passed on",
                       buf_str(&shown));
    return 0;
}

/* podman and apptainer decide which image names are valid; this refuses only names that would
 * be an option, or several words, on their command lines. */
int
value_check_image(const char *s, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    text_add_safe(&shown, s, strlen(s), 60);
    if (s[0] == '-' || strpbrk(s, " \t"))
        return err_set(e, ERR_USAGE,
                       "'%s' is not an image; write docker.io/pytorch/pytorch:latest, "
                       "localhost/mine or image.sif",
                       buf_str(&shown));
    return 0;
}

/* A path that is safe in such an option. */
static bool
is_mount_path(const char *s, size_t n)
{
    return n > 1 && s[0] == '/' && !memchr(s, ',', n);
}

int
value_check_mount(const char *s, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;
    size_t source = strcspn(s, ":");
    const char *to = s[source] ? s + source + 1 : "", *mode;
    size_t destination = strcspn(to, ":");

    if (value_check_text(s, MOUNT_MAX_BYTES, e) < 0)
        return -1;
    mode = to + destination;
    if (is_mount_path(s, source) && is_mount_path(to, destination) &&
        (!*mode || strcmp(mode, ":ro") == 0 || strcmp(mode, ":rw") == 0))
        return 0;
    text_add_safe(&shown, s, strlen(s), 60);
    return err_set(e, ERR_USAGE,
                   "'%s' is not a mount; write SOURCE:DESTINATION or SOURCE:DESTINATION:ro, "
                   "two absolute paths other than / without commas",
                   buf_str(&shown));
}

int
value_mib(const char *s, int32_t *out, struct err *e)
{
    int64_t mib;

    if (parse_size_mib(s, &mib, e) < 0)
        return -1;
    if (mib > VRAM_MAX_MIB)
        return err_set(e, ERR_USAGE, "'%.60s' is more than the maximum of %dT", s,
                       VRAM_MAX_MIB / (1024 * 1024));
    *out = (int32_t)mib;
    return 0;
}

int
value_permille(const char *s, int32_t *out, struct err *e)
{
    static const char *const want = "is not a fraction; write 0.8 or 80%";
    size_t n = strlen(s);
    bool percent = n > 0 && s[n - 1] == '%';
    auto_free char *number = xstrndup(s, n - percent);
    double v;

    if (parse_double(number, 0, percent ? 100 : 1, &v, NULL) < 0)
        return parse_refuse(e, s, want);
    v = round(v * (percent ? 10 : 1000));
    if (v < 1)
        return parse_refuse(e, s, "is too small; the minimum is 0.001");
    *out = (int32_t)v;
    return 0;
}

int
value_tenths(const char *s, uint8_t *out, struct err *e)
{
    static const char *const want = "is not a version; write 8.0";
    const char *dot = strchr(s, '.');
    auto_free char *whole = dot ? xstrndup(s, (size_t)(dot - s)) : xstrdup(s);
    int64_t major, minor = 0;

    if (parse_int(whole, 0, UINT8_MAX, &major, NULL) < 0 ||
        (dot && (!dot[1] || dot[2] || parse_int(dot + 1, 0, 9, &minor, NULL) < 0)))
        return parse_refuse(e, s, want);
    if (major * 10 + minor < 1 || major * 10 + minor > UINT8_MAX)
        return parse_refuse(e, s, "is out of range; versions go from 0.1 to 25.5");
    *out = (uint8_t)(major * 10 + minor);
    return 0;
}

/* Scans digits at *p as a number of at most max. */
static bool
scan_number(const char **p, int64_t max, int64_t *out)
{
    const char *s = *p;
    int64_t v = 0;

    for (; *s >= '0' && *s <= '9'; s++) {
        v = v * 10 + (*s - '0');
        if (v > max)
            return false;
    }
    if (s == *p)
        return false;
    *p = s;
    *out = v;
    return true;
}

/* --- tasks --- */

struct ranges {
    struct task_range *at; /* owned */
    size_t n, cap;
};

static void
push_range(struct ranges *r, int32_t first, int32_t last)
{
    r->at = xgrow(r->at, r->n, &r->cap, sizeof *r->at);
    r->at[r->n++] = (struct task_range){first, last};
}

static const char tasks_want[] = "is not a set of tasks; write 0-99, 1,3,5-9, 0-20:5 or 0-99%8";
static const char tasks_many[] =
    "has more than 16384 separate ranges; use fewer, or a step of 1";

_Static_assert(TASK_RANGES_MAX == 16384, "as tasks_many says");

/* Parses "a", "a-b" or "a-b:step" at *p, and a comma after it. Returns NULL, or what is
 * wrong. */
static const char *
scan_range(const char **p, struct ranges *r)
{
    int64_t first, last, step = 1;

    if (!scan_number(p, ARRAY_MAX - 1, &first))
        return **p >= '0' && **p <= '9' ? "goes beyond task 999999, the maximum" : tasks_want;
    last = first;
    if (**p == '-') {
        ++*p;
        if (!scan_number(p, ARRAY_MAX - 1, &last))
            return **p >= '0' && **p <= '9' ? "goes beyond task 999999, the maximum"
                                            : tasks_want;
        if (**p == ':') {
            ++*p;
            if (!scan_number(p, ARRAY_MAX, &step) || step == 0)
                return tasks_want;
        }
    }
    if (last < first)
        return "has a range that runs backwards; write the smaller number first";
    if (step == 1)
        push_range(r, (int32_t)first, (int32_t)last);
    for (; step > 1 && first <= last && r->n <= TASK_RANGES_MAX; first += step)
        push_range(r, (int32_t)first, (int32_t)first);
    if (r->n > TASK_RANGES_MAX)
        return tasks_many;
    if (**p == ',' && (*p)[1] >= '0' && (*p)[1] <= '9')
        ++*p;
    else if (**p && **p != '%')
        return tasks_want;
    return NULL;
}

_Static_assert(ARRAY_MAX == 1000000, "as the words above say");

static int
compare_ranges(const void *a, const void *b)
{
    const struct task_range *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Sorts the ranges and merges those that overlap or touch. */
static void
join_ranges(struct ranges *r)
{
    size_t n = 0;

    if (!r->at)
        return;
    qsort(r->at, r->n, sizeof *r->at, compare_ranges);
    for (size_t i = 0; i < r->n; i++) {
        if (n > 0 && r->at[i].first <= r->at[n - 1].last + 1) {
            if (r->at[i].last > r->at[n - 1].last)
                r->at[n - 1].last = r->at[i].last;
        } else {
            r->at[n++] = r->at[i];
        }
    }
    r->n = n;
}

static const char *
scan_tasks(const char *p, struct ranges *r, int32_t *max)
{
    int64_t at_once = 0;

    *max = 0;
    do {
        const char *wrong = scan_range(&p, r);
        if (wrong)
            return wrong;
    } while (*p && *p != '%');
    if (*p == '%') {
        p++;
        if (!scan_number(&p, ARRAY_MAX, &at_once) || at_once == 0 || *p)
            return "has no valid number after the %; write the maximum of tasks that run at "
                   "once: 0-99%8";
        *max = (int32_t)at_once;
    }
    return NULL;
}

int
value_tasks(const char *s, struct task_set *out, int32_t *max, struct err *e)
{
    struct ranges r = {0};
    const char *wrong = scan_tasks(s, &r, max);

    *out = (struct task_set){NULL, 0};
    if (wrong) {
        free(r.at);
        return parse_refuse(e, s, wrong);
    }
    join_ranges(&r);
    *out = (struct task_set){r.at, (int32_t)r.n};
    return 0;
}

/* --- deps --- */

/* Digits alone are an id; followed by _ and digits, a task of that array; anything else is a
 * name. */
static bool
read_id(const char *s, struct dep *d)
{
    int64_t job, task = -1;

    if (!scan_number(&s, UINT32_MAX, &job) || job == 0)
        return false;
    if (*s == '_') {
        s++;
        if (!scan_number(&s, ARRAY_MAX - 1, &task))
            return false;
    }
    d->job = (uint32_t)job;
    d->task = (int32_t)task;
    return !*s;
}

static int
read_dep(const char *s, struct dep *d, struct err *e)
{
    d->task = -1;
    if (read_id(s, d))
        return 0;
    d->job = 0;
    d->task = -1;
    if (!s[strspn(s, "0123456789_")])
        return parse_refuse(e, s, "is not a job; write ids (12,13), a task (12_3) or names");
    if (strncmp(s, "name:", 5) == 0) /* as in a selector */
        s += 5;
    if (value_check_text(s, NAME_MAX_BYTES, e) < 0)
        return err_prefix(e, "a job's name");
    d->name = xstrdup(s);
    return 0;
}

int
value_deps(const char *s, enum dep_type type, struct dep **deps, int *n, struct err *e)
{
    auto_free char *copy = xstrdup(s);
    char *rest = copy, *word;
    int had = *n;

    while ((word = strsep(&rest, ","))) {
        struct dep d = {.type = type};
        int rc = *n < DEPS_MAX
                     ? read_dep(word, &d, e)
                     : err_set(e, ERR_USAGE, "more than the maximum of %d jobs", DEPS_MAX);
        if (rc != 0) {
            while (*n > had)
                free((*deps)[--*n].name);
            return -1;
        }
        *deps = xrealloc(*deps, (size_t)(*n + 1) * sizeof **deps);
        (*deps)[(*n)++] = d;
    }
    return 0;
}

const char *
value_dep_name(enum dep_type type)
{
    static const char *const names[] = {
        [DEP_SUCCESS] = "success", [DEP_ANY] = "any", [DEP_FAILED] = "failed"};

    return names[type];
}

static const char *const placing_names[PLACING_RULES] = {
    [PLACING_PACK] = "pack", [PLACING_SPREAD] = "spread", [PLACING_FIRST] = "first"};

int
value_placing(const char *s, uint8_t *out, struct err *e)
{
    for (uint8_t i = PLACING_PACK; i < PLACING_RULES; i++) {
        if (strcasecmp(s, placing_names[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return parse_refuse(e, s, "is not a placement rule; write pack, spread or first");
}

const char *
value_placing_name(uint8_t rule)
{
    return rule < PLACING_RULES ? placing_names[rule] : NULL;
}

static int
read_excess(const char *word, enum on_exceed *out, struct err *e)
{
    static const char *const words[] = {
        [ON_EXCEED_WARN] = "warn", [ON_EXCEED_KILL] = "kill", [ON_EXCEED_IGNORE] = "ignore"};

    for (int i = ON_EXCEED_WARN; i <= ON_EXCEED_IGNORE; i++) {
        if (strcasecmp(word, words[i]) == 0) {
            *out = (enum on_exceed)i;
            return 0;
        }
    }
    return err_set(e, ERR_USAGE, "'%.40s' is not warn, kill or ignore", word);
}

static int
read_rule(const char *gpus, enum on_exceed what, enum on_exceed out[GPU_MAX], struct err *e)
{
    uint64_t set;

    if (parse_index_set(gpus, &set, e) < 0)
        return -1;
    for (int i = 0; i < GPU_MAX; i++) {
        if (!(set >> i & 1))
            continue;
        if (out[i] != ON_EXCEED_DEFAULT)
            return err_set(e, ERR_USAGE, "gpu %d is named twice", i);
        out[i] = what;
    }
    return 0;
}

int
value_exceed_rules(const char *text, enum on_exceed out[GPU_MAX], struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *rule;

    memset(out, 0, GPU_MAX * sizeof *out);
    while ((rule = strsep(&rest, " "))) {
        enum on_exceed what = ON_EXCEED_DEFAULT;
        char *equals = strchr(rule, '=');
        if (!rule[0])
            continue;
        if (!equals)
            return err_set(e, ERR_USAGE, "'%.40s' is no rule; write 0-3=kill 5=ignore", rule);
        *equals = '\0';
        if (read_excess(equals + 1, &what, e) < 0 || read_rule(rule, what, out, e) < 0)
            return -1;
    }
    return 0;
}

int
value_mps(const char *text, uint64_t *gpus, struct err *e)
{
    *gpus = strcmp(text, "on") == 0 ? UINT64_MAX : 0;
    if (*gpus || strcmp(text, "off") == 0)
        return 0;
    if (text[0] >= '0' && text[0] <= '9')
        return parse_index_set(text, gpus, e);
    return err_set(e, ERR_USAGE, "'%.40s' is none of off, on and GPUs by number, 0-3,5", text);
}
