/* Numbers, sizes, durations and index lists, strictly: the whole string, or an error that
 * shows the string and what would be right. strtod is not used, so that no locale, "nan" or
 * "0x" is accepted. Called by spec, cli and the programs. */
#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/text.h"

#define DURATION_MAX_MS (36500LL * 24 * 3600 * 1000) /* a hundred years */
#define SIZE_MAX_MIB    (1LL << 40)
#define SHOWN_COLUMNS   60

int
parse_refuse(struct err *e, const char *s, const char *what)
{
    auto_buf struct buf shown = BUF_INIT;

    text_add_safe(&shown, s, strlen(s), SHOWN_COLUMNS);
    if (*s)
        err_set(e, ERR_USAGE, "'%s' %s", buf_str(&shown), what);
    else
        err_set(e, ERR_USAGE, "an empty value %s", what);
    return -1;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *p, at least one; clamps to INT64_MAX. */
static bool
scan_whole(const char **p, int64_t *out)
{
    const char *s = *p;
    int64_t v = 0;

    if (!is_digit(*s))
        return false;
    for (; is_digit(*s); s++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
            v = INT64_MAX;
    *p = s;
    *out = v;
    return true;
}

/* Reads "12", "1.5" or ".5" at *p. Ignores digits after the 15th decimal place. */
static bool
scan_decimal(const char **p, double *out)
{
    const char *s = *p;
    double whole = 0, part = 0, scale = 1;
    bool any = false;

    for (; is_digit(*s); s++, any = true)
        whole = whole * 10 + (*s - '0');
    if (*s == '.' && is_digit(s[1])) {
        any = true;
        for (s++; is_digit(*s); s++)
            if (scale < 1e15) {
                part = part * 10 + (*s - '0');
                scale *= 10;
            }
    }
    if (!any)
        return false;
    *p = s;
    *out = whole + part / scale;
    return true;
}

int
parse_int(const char *s, int64_t min, int64_t max, int64_t *out, struct err *e)
{
    const char *p = s + (*s == '-');
    char want[96];
    int64_t v;

    snprintf(want, sizeof want, "is not a whole number from %lld to %lld", (long long)min,
             (long long)max);
    if (!scan_whole(&p, &v) || *p)
        return parse_refuse(e, s, want);
    if (*s == '-')
        v = -v;
    if (v < min || v > max)
        return parse_refuse(e, s, want);
    *out = v;
    return 0;
}

int
parse_double(const char *s, double min, double max, double *out, struct err *e)
{
    const char *p = s + (*s == '-');
    char want[96];
    double v;

    snprintf(want, sizeof want, "is not a number from %g to %g", min, max);
    if (!scan_decimal(&p, &v) || *p)
        return parse_refuse(e, s, want);
    if (*s == '-')
        v = -v;
    if (!(v >= min && v <= max))
        return parse_refuse(e, s, want);
    *out = v;
    return 0;
}

int
parse_bool(const char *s, bool *out, struct err *e)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(s, words[i]) == 0) {
            *out = i % 2 == 1;
            return 0;
        }
    }
    return parse_refuse(e, s, "is not true or false; write yes or no");
}

/* The unit's size in MiB, 0 for an unknown unit. */
static double
size_unit_mib(const char *unit)
{
    static const struct {
        const char *names[3];
        double mib;
    } units[] = {
        {{"m", "mb", "mib"}, 1},
        {{"g", "gb", "gib"}, 1024},
        {{"t", "tb", "tib"}, 1024.0 * 1024},
        {{"k", "kb", "kib"}, 1.0 / 1024},
    };

    if (!*unit)
        return 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        for (size_t j = 0; j < 3; j++)
            if (strcasecmp(unit, units[i].names[j]) == 0)
                return units[i].mib;
    return 0;
}

int
parse_size_mib(const char *s, int64_t *out, struct err *e)
{
    const char *p = s;
    double v, unit;

    if (!scan_decimal(&p, &v) || (unit = size_unit_mib(p)) <= 0)
        return parse_refuse(e, s, "is not a size; write 8G, 8192M or 8192 (MiB)");
    v = round(v * unit);
    if (!(v >= 1))
        return parse_refuse(e, s, "is less than 1 MiB; write 8G, 8192M or 8192 (MiB)");
    if (v > (double)SIZE_MAX_MIB)
        return parse_refuse(e, s, "is too large for a size; write 8G, 8192M or 8192 (MiB)");
    *out = (int64_t)v;
    return 0;
}

/* [D-]HH[:MM[:SS]] with days, HH:MM:SS or MM:SS without; *out in seconds. */
static bool
scan_clock(const char *p, double *out)
{
    int64_t field[3] = {0}, days = 0;
    const char *dash = strchr(p, '-');
    int n = 0;

    if (dash && (!scan_whole(&p, &days) || *p++ != '-'))
        return false;
    do {
        if (n == 3 || !scan_whole(&p, &field[n]) || (n > 0 && field[n] > 59))
            return false;
        n++;
    } while (*p == ':' && *++p);
    if (*p || p[-1] == ':' || (!dash && n == 1))
        return false;
    if (dash && field[0] > 23)
        return false;
    if (!dash && n == 2) { /* minutes and seconds */
        *out = (double)field[0] * 60 + (double)field[1];
        return true;
    }
    *out = (double)days * 86400 + (double)field[0] * 3600 + (double)field[1] * 60 +
           (double)field[2];
    return true;
}

/* "1d12h", "1.5h", "500ms": each unit at most once, larger units first; *out in ms. */
static bool
scan_units(const char *p, double *out)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"d", 86400e3}, {"h", 3600e3}, {"ms", 1}, {"m", 60e3}, {"s", 1e3}};
    double v, below = INFINITY;

    *out = 0;
    while (*p) {
        size_t i = 0;
        if (!scan_decimal(&p, &v))
            return false;
        while (i < 5 && strncasecmp(p, units[i].name, strlen(units[i].name)) != 0)
            i++;
        if (i == 5 || units[i].ms >= below)
            return false;
        below = units[i].ms;
        p += strlen(units[i].name);
        *out += v * units[i].ms;
    }
    return isinf(below) == 0;
}

int
parse_duration_ms(const char *s, int64_t bare_unit_ms, int64_t *out, struct err *e)
{
    const char *p = s;
    double v;

    if (strpbrk(s, ":-")) {
        if (!scan_clock(s, &v))
            return parse_refuse(e, s,
                                "is not a duration; write 90s, 15m, 2h, 1d12h or 12:30:00");
        v *= 1000;
    } else if (scan_decimal(&p, &v) && !*p) {
        v *= (double)bare_unit_ms;
    } else if (!scan_units(s, &v)) {
        return parse_refuse(e, s, "is not a duration; write 90s, 15m, 2h, 1d12h or 12:30:00");
    }
    v = round(v);
    if (!(v >= 1))
        return parse_refuse(e, s, "is not a duration; it must be more than zero, such as 90s");
    if (v > (double)DURATION_MAX_MS)
        return parse_refuse(e, s, "is too long for a duration; the maximum is 36500d");
    *out = (int64_t)v;
    return 0;
}

/* Reads "a" or "a-b" at *p and skips a following comma. */
static bool
scan_index_range(const char **p, int64_t *first, int64_t *last)
{
    if (!scan_whole(p, first))
        return false;
    *last = *first;
    if (**p == '-') {
        ++*p;
        if (!scan_whole(p, last))
            return false;
    }
    if (**p == ',')
        return *++*p != '\0';
    return !**p;
}

/* As scan_index_range, with an error message. */
static int
next_index_range(const char *s, const char **p, int64_t *first, int64_t *last, struct err *e)
{
    if (!scan_index_range(p, first, last))
        return parse_refuse(e, s, "is not a list of GPU indices; write 0-3,6");
    if (*last < *first)
        return parse_refuse(e, s,
                            "has a range that runs backwards; write the smaller index first");
    if (*last > 63)
        return parse_refuse(e, s, "names a GPU above 63, the highest index");
    return 0;
}

int
parse_index_set(const char *s, uint64_t *out, struct err *e)
{
    uint64_t set = 0;
    const char *p = s;
    int64_t first = 0, last = 0;

    do {
        if (next_index_range(s, &p, &first, &last, e) < 0)
            return -1;
        for (; first <= last; first++)
            set |= UINT64_C(1) << first;
    } while (*p);
    *out = set;
    return 0;
}

int
parse_index_list(const char *s, uint8_t *out, int max, struct err *e)
{
    uint64_t seen = 0;
    const char *p = s;
    int64_t first = 0, last = 0;
    int n = 0;

    do {
        if (next_index_range(s, &p, &first, &last, e) < 0)
            return -1;
        for (; first <= last; first++) {
            if (seen & UINT64_C(1) << first)
                return parse_refuse(e, s, "names a GPU twice");
            if (n == max) {
                char want[64];
                snprintf(want, sizeof want, "names more than the maximum of %d GPUs", max);
                return parse_refuse(e, s, want);
            }
            seen |= UINT64_C(1) << first;
            out[n++] = (uint8_t)first;
        }
    } while (*p);
    return n;
}

char *
format_mib(int64_t mib, char *out)
{
    if (mib < 0)
        snprintf(out, 24, "n/a");
    else if (mib < 1024)
        snprintf(out, 24, "%lld MiB", (long long)mib);
    else
        snprintf(out, 24, "%.1f GiB", (double)mib / 1024);
    return out;
}

#define TENTHS_FROM_MIB 5120 /* from here on, 0.1 GiB is a small fraction */

char *
format_ask_mib(int64_t mib, char *out)
{
    int64_t tenths = (mib * 10 + 512) / 1024;

    if (mib < 1024)
        snprintf(out, 24, "%lldM", (long long)mib);
    else if (mib < TENTHS_FROM_MIB)
        snprintf(out, 24, "%" PRId64 "M", (mib + 9) / 10 * 10);
    else if (tenths % 10)
        snprintf(out, 24, "%lld.%lldG", (long long)(tenths / 10), (long long)(tenths % 10));
    else
        snprintf(out, 24, "%lldG", (long long)(tenths / 10));
    return out;
}

char *
format_duration(int64_t ms, char *out)
{
    long long s = ms >= 0 ? ms / 1000 + (ms % 1000 >= 500) : 0;

    if (ms < 0)
        snprintf(out, 24, "n/a");
    else if (ms < 9950)
        snprintf(out, 24, "%.1fs", (double)ms / 1000);
    else if (s < 60)
        snprintf(out, 24, "%llds", s);
    else if (s < 3600)
        snprintf(out, 24, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, 24, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, 24, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return out;
}

int
parse_signal(const char *s, int *out, struct err *e)
{
    const char *name = strncasecmp(s, "SIG", 3) == 0 ? s + 3 : s;
    int64_t number;
    for (int sig = 1; sig < NSIG; sig++) {
        const char *known = libc_signal_name(sig);
        if (known && strcasecmp(known, name) == 0) {
            *out = sig;
            return 0;
        }
    }
    if (parse_int(s, 1, 64, &number, NULL) < 0)
        return parse_refuse(e, s, "is not a signal; write USR1, TERM or 10");
    *out = (int)number;
    return 0;
}
