/* Times; see when.h. Days are counted on the local clock, so that tomorrow 16:00 is right
 * across a daylight saving change; the caller's mktime converts back. */
#include "spec/when.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

#define YEAR_MIN 1970
#define YEAR_MAX 9999

static const char want[] =
    "is not a time; write now+2h, 16:00, tomorrow, 2026-12-24 or 2026-12-24T18:30";

/* Scans n digits at *p, a number from min to max. */
static bool
scan_digits(const char **p, int n, int min, int max, int *out)
{
    int v = 0;

    for (int i = 0; i < n; i++, ++*p) {
        if (**p < '0' || **p > '9')
            return false;
        v = v * 10 + (**p - '0');
    }
    *out = v;
    return v >= min && v <= max;
}

static bool
scan_char(const char **p, char c)
{
    if (**p != c)
        return false;
    ++*p;
    return true;
}

/* Applies "PM" or " am" at *p. False: it is there, but the hour does not allow it. */
static bool
scan_half(const char **p, struct tm *tm)
{
    const char *word = *p + (**p == ' ');
    bool is_pm = strncasecmp(word, "pm", 2) == 0;

    if (!is_pm && strncasecmp(word, "am", 2) != 0)
        return true;
    *p = word + 2;
    if (tm->tm_hour < 1 || tm->tm_hour > 12)
        return false;
    tm->tm_hour = tm->tm_hour % 12 + (is_pm ? 12 : 0);
    return true;
}

/* Scans "9:00", "16:00", "16:00:30" or "4:00PM" at *p into tm. */
static bool
scan_time(const char **p, struct tm *tm)
{
    int digits = (*p)[0] && (*p)[1] == ':' ? 1 : 2;

    tm->tm_sec = 0;
    if (!scan_digits(p, digits, 0, 23, &tm->tm_hour) || !scan_char(p, ':') ||
        !scan_digits(p, 2, 0, 59, &tm->tm_min))
        return false;
    if (**p == ':' && (!scan_char(p, ':') || !scan_digits(p, 2, 0, 59, &tm->tm_sec)))
        return false;
    return scan_half(p, tm);
}

static int
days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* "2026-12-24" at *p. */
static bool
scan_date(const char **p, struct tm *tm)
{
    int year, month, day;

    if (!scan_digits(p, 4, YEAR_MIN, YEAR_MAX, &year) || !scan_char(p, '-') ||
        !scan_digits(p, 2, 1, 12, &month) || !scan_char(p, '-') ||
        !scan_digits(p, 2, 1, days_of(year, month), &day))
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return true;
}

/* Days from 1970 to a date of the Gregorian calendar (Howard Hinnant's days_from_civil). */
static int64_t
days_since_epoch(const struct tm *tm)
{
    int64_t y = tm->tm_year + 1900 - (tm->tm_mon < 2);
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year =
        (153 * (tm->tm_mon + (tm->tm_mon > 1 ? -2 : 10)) + 2) / 5 + tm->tm_mday - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Scans "Z", "+01:00" or "-0530" at *p as seconds east of UTC; false if there is none. */
static bool
scan_zone(const char **p, int64_t *east)
{
    int sign = **p == '-' ? -1 : 1, hours, minutes;

    *east = 0;
    if (scan_char(p, 'Z') || scan_char(p, 'z'))
        return true;
    if ((**p != '+' && **p != '-') || (++*p, !scan_digits(p, 2, 0, 15, &hours)))
        return false;
    (void)scan_char(p, ':');
    if (!scan_digits(p, 2, 0, 59, &minutes))
        return false;
    *east = sign * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

static int
to_us(const char *s, const struct when_clock *clock, struct tm tm, int64_t *out, struct err *e)
{
    time_t t;

    if (!clock)
        return parse_refuse(e, s, "needs the local clock; write a time with Z or +01:00");
    tm.tm_isdst = -1;
    t = clock->to_time(&tm);
    if (t == (time_t)-1)
        return parse_refuse(e, s, "does not exist in local time");
    *out = (int64_t)t * 1000000;
    return 0;
}

/* A date with or without a time. */
static int
parse_date(const char *s, const struct when_clock *clock, int64_t *out, struct err *e)
{
    struct tm tm = {0};
    const char *p = s;
    int64_t east;

    if (!scan_date(&p, &tm))
        return parse_refuse(e, s, want);
    if (*p == 'T' || *p == 't' || *p == ' ') {
        p++;
        if (!scan_time(&p, &tm))
            return parse_refuse(e, s, want);
        if (*p) {
            if (!scan_zone(&p, &east) || *p)
                return parse_refuse(e, s, want);
            *out = (days_since_epoch(&tm) * 86400 + tm.tm_hour * 3600 + tm.tm_min * 60 +
                    tm.tm_sec - east) *
                   1000000;
            return 0;
        }
    }
    return *p ? parse_refuse(e, s, want) : to_us(s, clock, tm, out, e);
}

/* --- Slurm's dates, month first --- */

static bool
is_six_digits(const char *s)
{
    return strspn(s, "0123456789") == 6;
}

/* Scans "12/24", "12/24/26", "12/24/2026" or "122426" at *p; *year 0: no year given. */
static bool
scan_month_first(const char **p, struct tm *tm, int *year)
{
    bool is_plain = is_six_digits(*p);
    int month, day;

    *year = 0;
    if (!scan_digits(p, (*p)[1] == '/' ? 1 : 2, 1, 12, &month) ||
        !(is_plain || scan_char(p, '/')) ||
        !scan_digits(p, is_plain || strspn(*p, "0123456789") > 1 ? 2 : 1, 1, 31, &day))
        return false;
    if (is_plain || scan_char(p, '/')) {
        int digits = !is_plain && strspn(*p, "0123456789") == 4 ? 4 : 2;

        if (!scan_digits(p, digits, 0, YEAR_MAX, year))
            return false;
        *year += digits == 2 ? 2000 : 0;
        if (*year < YEAR_MIN)
            return false;
    }
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return true;
}

/* Resolves a day without a year to the next one, or the last. */
static int
settle_year(const char *s, const struct when_clock *clock, struct tm tm, int64_t *out,
            struct err *e)
{
    if (!clock)
        return to_us(s, clock, tm, out, e);
    tm.tm_year = clock->local.tm_year;
    if (to_us(s, clock, tm, out, e) < 0)
        return -1;
    if (clock->past == (*out <= clock->now_us))
        return 0;
    tm.tm_year += clock->past ? -1 : 1;
    return to_us(s, clock, tm, out, e);
}

static int
parse_month_first(const char *s, const struct when_clock *clock, int64_t *out, struct err *e)
{
    struct tm tm = {0};
    const char *p = s;
    int year;

    if (!scan_month_first(&p, &tm, &year))
        return parse_refuse(e, s, want);
    if (*p && (!strchr("-Tt ", *p++) || !scan_time(&p, &tm) || *p))
        return parse_refuse(e, s, want);
    /* Without a year, allows 29 February: to_time carries it over in other years. */
    if (tm.tm_mday > days_of(year ? year : 2000, tm.tm_mon + 1))
        return parse_refuse(e, s, want);
    if (!year)
        return settle_year(s, clock, tm, out, e);
    tm.tm_year = year - 1900;
    return to_us(s, clock, tm, out, e);
}

/* --- spans from now --- */

bool
when_span(const char *s, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000},        {"second", 1000},  {"minute", 60000},
                 {"hour", 3600000}, {"day", 86400000}, {"week", 604800000}};
    size_t digits = strspn(s, "0123456789");
    auto_free char *number = xstrndup(s, digits);
    bool is_apart = s[digits] == ' ' && s[digits + 1];

    digits += is_apart ? 1 : 0;
    size_t len = strlen(s + digits);
    int64_t n;

    if (len > 1 && (s[digits + len - 1] | 32) == 's')
        len--;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) != len || strncasecmp(s + digits, units[i].name, len) != 0)
            continue;
        if (parse_int(number, 0, units[i].ms > 3600000 ? 5200 : 100000000, &n, NULL) < 0)
            return false;
        *ms = n * units[i].ms;
        return true;
    }
    return false;
}

static int
parse_after_now(const char *s, const char *duration, const struct when_clock *clock,
                int64_t *out, struct err *e)
{
    int64_t ms = 0;

    if (!clock)
        return parse_refuse(e, s, "needs a clock; write a time with Z or +01:00");
    if (*duration && !when_span(duration, &ms) && parse_duration_ms(duration, 1000, &ms, e) < 0)
        return -1;
    *out = clock->now_us + ms * 1000;
    return 0;
}

/* Parses today, tomorrow, noon, midnight and the like. NULL if s begins with none of them;
 * else the rest of s, with tm set. *roll: move to the next day if the time has passed. */
static const char *
take_day(const char *s, struct tm *tm, bool *roll)
{
    static const struct {
        const char *name;
        int day, hour;
        bool roll;
    } words[] = {{"today", 0, 0, false},   {"tomorrow", 1, 0, false},
                 {"noon", 0, 12, true},    {"elevenses", 0, 11, true},
                 {"fika", 0, 15, true},    {"teatime", 0, 16, true},
                 {"midnight", 1, 0, false}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i].name);
        if (strncasecmp(s, words[i].name, n) != 0)
            continue;
        tm->tm_mday += words[i].day;
        tm->tm_hour = words[i].hour;
        tm->tm_min = tm->tm_sec = 0;
        *roll = words[i].roll;
        return s + n;
    }
    return NULL;
}

/* Parses a day by name, or a time of day. */
static int
parse_day(const char *s, const struct when_clock *clock, int64_t *out, struct err *e)
{
    struct tm tm = clock ? clock->local : (struct tm){.tm_mday = 1};
    bool roll = true;
    const char *p = take_day(s, &tm, &roll);

    if (p && !roll && (*p == ' ' || *p == 'T')) {
        p++;
        if (!scan_time(&p, &tm) || *p)
            return parse_refuse(e, s, want);
    } else if (!p) {
        p = s;
        if (!scan_time(&p, &tm))
            return parse_refuse(e, s, want);
    }
    if (*p)
        return parse_refuse(e, s, want);
    if (to_us(s, clock, tm, out, e) < 0)
        return -1;
    /* Changes the day of the month, as a day with a clock change does not have 24 hours. */
    if (!roll || !clock || clock->past == (*out <= clock->now_us))
        return 0;
    tm.tm_mday += clock->past ? -1 : 1;
    return to_us(s, clock, tm, out, e);
}

/* Matches now, now+1h, "now + 1hour"; returns the text after the plus, or NULL. */
static const char *
after_now(const char *s)
{
    if (s[0] == '+')
        return s[1] ? s + 1 : NULL;
    if (strncasecmp(s, "now", 3) != 0)
        return NULL;
    s += 3 + strspn(s + 3, " ");
    if (s[0] != '+')
        return s[0] ? NULL : s;
    s += 1 + strspn(s + 1, " ");
    return s[0] ? s : NULL;
}

/* Turns "16:00 tomorrow" into "tomorrow 16:00"; NULL: s is not a time followed by a day. */
static char *
day_first(const char *s)
{
    struct tm tm;
    const char *p = s;

    return scan_time(&p, &tm) && p[0] == ' ' && p[1]
               ? xasprintf("%s %.*s", p + 1, (int)(p - s), s)
               : NULL;
}

static int
parse_moment(const char *s, const struct when_clock *clock, int64_t *out, struct err *e)
{
    const char *duration = after_now(s);
    size_t epoch = s[0] == '@' ? 1 : strncasecmp(s, "uts", 3) == 0 ? 3 : 0;
    int64_t seconds;

    if (duration)
        return parse_after_now(s, duration, clock, out, e);
    if (epoch) {
        if (parse_int(s + epoch, 0, INT64_MAX / 1000000, &seconds, NULL) < 0)
            return parse_refuse(e, s, want);
        *out = seconds * 1000000;
        return 0;
    }
    if (strlen(s) >= 8 && s[4] == '-')
        return parse_date(s, clock, out, e);
    if (is_six_digits(s) || strchr(s, '/'))
        return parse_month_first(s, clock, out, e);
    return parse_day(s, clock, out, e);
}

int
when_parse(const char *s, const struct when_clock *clock, int64_t *out, struct err *e)
{
    auto_free char *moved = day_first(s);

    if (moved && parse_moment(moved, clock, out, NULL) < 0)
        return parse_refuse(e, s, want);
    return moved ? 0 : parse_moment(s, clock, out, e);
}
