/* Parses gpusched's jobs file: one shell command per line, with an optional leading [key=value
 * ... cancel]. One bad line rejects the whole file, with the original's messages. The grammar
 * is separate from Berth's own (spec/jobsfile.c). Pure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"
#include "wire/client.h"

__attribute__((format(printf, 3, 4))) static int
refuse(struct buf *why, int number, const char *fmt, ...)
{
    va_list ap;

    buf_addf(why, "jobs file line %d: ", number);
    va_start(ap, fmt);
    buf_addv(why, fmt, ap);
    va_end(ap);
    return -1;
}

/* Refuse with the value in quotes between the two texts. */
static int
refuse_value(struct buf *why, int number, const char *before, const char *value,
             const char *behind)
{
    auto_buf struct buf shown = BUF_INIT;

    py_add_repr(&shown, value);
    return refuse(why, number, "%s%s%s", before, buf_str(&shown), behind);
}

/* Digits, an optional fraction, then a unit of the list or nothing. Returns the unit's index
 * in the list, -1 if malformed. */
static int
read_measure(const char *value, const char *const *units, double *number)
{
    const char *at = value;
    auto_free char *digits = NULL;

    at += strspn(at, "0123456789");
    if (at == value)
        return -1;
    if (*at == '.' && strspn(at + 1, "0123456789") > 0)
        at += 1 + strspn(at + 1, "0123456789");
    digits = xstrndup(value, (unsigned long)(at - value));
    *number = strtod(digits, NULL);
    for (int i = 0; units[i]; i++) {
        if (strcasecmp(at, units[i]) == 0)
            return i;
    }
    return -1;
}

static int
set_vram(struct gs_spec *spec, const char *value, int number, struct buf *why)
{
    static const char *const units[] = {"", "m", "mb", "mib", "g", "gb", "gib", NULL};
    double v;
    int unit = read_measure(value, units, &v);

    if (unit < 0)
        return refuse_value(why, number, "cannot parse vram value ", value,
                            " (use MiB or a G/GiB suffix)");
    spec->vram_mib = rint(unit >= 4 ? v * 1024 : v);
    if (spec->vram_mib <= 0)
        return refuse_value(why, number, "vram must be positive, got ", value, "");
    return 0;
}

static int
set_timeout(struct gs_spec *spec, const char *value, int number, struct buf *why)
{
    static const char *const units[] = {"", "s", "m", "h", "d", NULL};
    static const int seconds[] = {1, 1, 60, 3600, 86400};
    double v;
    int unit = read_measure(value, units, &v);

    if (unit < 0)
        return refuse_value(why, number, "cannot parse duration ", value, " (use s/m/h/d)");
    spec->timeout_s = v * seconds[unit];
    if (spec->timeout_s <= 0)
        return refuse_value(why, number, "timeout must be positive, got ", value, "");
    return 0;
}

static int
set_count(int64_t *field, const char *name, int64_t least, const char *value, int number,
          struct buf *why)
{
    int64_t v;

    if (!py_int(value, &v)) {
        auto_free char *before = xasprintf("%s must be an integer, got ", name);

        return refuse_value(why, number, before, value, "");
    }
    if (v < least)
        return refuse(why, number, "%s must be >= %lld, got %lld", name, (long long)least,
                      (long long)v);
    *field = v;
    return 0;
}

static void
lower(char *s)
{
    for (; *s; s++) {
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s - 'A' + 'a');
    }
}

/* Apply one word of the block; token is modified. */
static int
set_token(struct gs_spec *spec, char *token, int number, struct buf *why)
{
    char *value = strchr(token, '=');

    if (!value) {
        if (strcasecmp(token, "cancel") == 0) {
            spec->cancel = true;
            return 0;
        }
        return refuse_value(why, number, "malformed attribute ", token,
                            " (expected key=value, or bare 'cancel')");
    }
    *value++ = '\0';
    lower(token);
    if (strcmp(token, "vram") == 0)
        return set_vram(spec, value, number, why);
    if (strcmp(token, "timeout") == 0)
        return set_timeout(spec, value, number, why);
    if (strcmp(token, "retries") == 0)
        return set_count(&spec->retries, "retries", 0, value, number, why);
    if (strcmp(token, "gpus") == 0)
        return set_count(&spec->gpus, "gpus", 1, value, number, why);
    return refuse_value(why, number, "unknown attribute ", token,
                        " (known: vram, gpus, timeout, retries, cancel)");
}

/* Apply the words between the brackets. */
static int
read_block(struct gs_spec *spec, const char *block, size_t n, int number, struct buf *why)
{
    const char *end = block + n;

    while (block < end) {
        size_t space = py_space(block, (size_t)(end - block)), len = 0;
        auto_free char *token = NULL;

        block += space;
        if (space > 0)
            continue;
        while (block + len < end && py_space(block + len, (size_t)(end - block) - len) == 0)
            len++;
        token = xstrndup(block, len);
        block += len;
        if (set_token(spec, token, number, why) < 0)
            return -1;
    }
    return 0;
}

static void
push(struct gs_jobs *out, const struct gs_spec *spec)
{
    out->at = xgrow(out->at, out->n, &out->cap, sizeof *out->at);
    out->at[out->n++] = *spec;
}

static int
read_line(const char *s, size_t n, int number, struct gs_jobs *out, struct buf *why)
{
    struct gs_spec spec = {.gpus = 1};
    size_t bad;

    n = py_strip(&s, n);
    if (n == 0 || *s == '#')
        return 0;
    if (!text_is_utf8(s, n, &bad) || memchr(s, '\0', n))
        return refuse(why, number, "it is no UTF-8 text");
    if (*s == '[') {
        const char *close = memchr(s, ']', n), *block = s + 1;

        if (!close)
            return refuse(why, number, "unterminated '[...]' attribute block");
        n -= (size_t)(close + 1 - s);
        s = close + 1;
        n = py_strip(&s, n);
        if (n == 0)
            return refuse(why, number, "attribute block present but command is empty");
        if (read_block(&spec, block, (size_t)(close - block), number, why) < 0)
            return -1;
    }
    spec.command = xstrndup(s, n);
    push(out, &spec);
    return 0;
}

/* Key: a digest of the command, and the index among equal commands. */
static void
give_keys(struct gs_jobs *j)
{
    auto_json json_t *seen = json_object(); /* number of lines per command */

    for (size_t i = 0; i < j->n; i++) {
        struct gs_spec *spec = &j->at[i];
        json_int_t n = json_integer_value(json_object_get(seen, spec->command));
        char digest[13];

        json_object_set_new_nocheck(seen, spec->command, json_integer(n + 1));
        text_sha1_12(spec->command, strlen(spec->command), digest);
        snprintf(spec->key, sizeof spec->key, "%s#%d", digest, (int)n);
    }
}

int
gs_jobs_parse(const char *text, size_t len, struct gs_jobs *out, struct buf *why)
{
    const char *at = text, *end = text + len;
    int number = 1;

    *out = (struct gs_jobs){0};
    if (len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
        at += 3;
    for (; at < end; number++) {
        size_t n = 0;

        while (at + n < end && at[n] != '\n' && at[n] != '\r')
            n++;
        if (read_line(at, n, number, out, why) < 0) {
            gs_jobs_free(out);
            return -1;
        }
        at += n;
        if (at < end)
            at += at + 1 < end && at[0] == '\r' && at[1] == '\n' ? 2 : 1;
    }
    give_keys(out);
    return 0;
}

void
gs_jobs_free(struct gs_jobs *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->at[i].command);
    free(j->at);
    *j = (struct gs_jobs){0};
}
