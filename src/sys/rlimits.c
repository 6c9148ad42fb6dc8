/* Resource limits: see rlimits.h. The daemon reads those of the submitting process from the
 * kernel, so that no user can claim more than they have; the shepherd sets them for the
 * job. */
#include "sys/rlimits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"

#define PROC_LIMITS_MAX 16384

/* Our name, and the kernel's in /proc/PID/limits (fs/proc/base.c). */
static const struct {
    const char *name, *title;
} rows[RLIM_NLIMITS] = {
    [RLIMIT_CPU] = {"cpu", "Max cpu time"},
    [RLIMIT_FSIZE] = {"fsize", "Max file size"},
    [RLIMIT_DATA] = {"data", "Max data size"},
    [RLIMIT_STACK] = {"stack", "Max stack size"},
    [RLIMIT_CORE] = {"core", "Max core file size"},
    [RLIMIT_RSS] = {"rss", "Max resident set"},
    [RLIMIT_NPROC] = {"nproc", "Max processes"},
    [RLIMIT_NOFILE] = {"nofile", "Max open files"},
    [RLIMIT_MEMLOCK] = {"memlock", "Max locked memory"},
    [RLIMIT_AS] = {"as", "Max address space"},
    [RLIMIT_LOCKS] = {"locks", "Max file locks"},
    [RLIMIT_SIGPENDING] = {"sigpending", "Max pending signals"},
    [RLIMIT_MSGQUEUE] = {"msgqueue", "Max msgqueue size"},
    [RLIMIT_NICE] = {"nice", "Max nice priority"},
    [RLIMIT_RTPRIO] = {"rtprio", "Max realtime priority"},
    [RLIMIT_RTTIME] = {"rttime", "Max realtime timeout"},
};

/* A number or "unlimited". */
static int
add_value(struct buf *out, const char **at)
{
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, " \n");
    if (n == 9 && strncmp(*at, "unlimited", n) == 0)
        buf_addc(out, '-');
    else if (n > 0 && strspn(*at, "0123456789") >= n)
        buf_add(out, *at, n);
    else
        return -1;
    *at += n;
    return 0;
}

/* Any user may read this file, whereas prlimit on another user's process needs a capability
 * that root may lack in a container. */
int
rlimits_of(pid_t pid, struct buf *out)
{
    auto_buf struct buf text = BUF_INIT;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    if (file_read(path, PROC_LIMITS_MAX, &text, NULL) < 0)
        return -1;
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        const char *at = strstr(buf_str(&text), rows[i].title);
        if (!at)
            return -1;
        at += strlen(rows[i].title);
        buf_addf(out, "%s%s=", i ? " " : "", rows[i].name);
        if (add_value(out, &at) < 0)
            return -1;
        buf_addc(out, ':');
        if (add_value(out, &at) < 0)
            return -1;
    }
    return 0;
}

static void
put_value(struct buf *out, rlim_t value)
{
    if (value == RLIM_INFINITY)
        buf_addc(out, '-');
    else
        buf_addf(out, "%llu", (unsigned long long)value);
}

void
rlimits_add(struct buf *out, int which, const struct rlimit *value)
{
    buf_addf(out, "%s%s=", out->len ? " " : "", rows[which].name);
    put_value(out, value->rlim_cur);
    buf_addc(out, ':');
    put_value(out, value->rlim_max);
}

/* Parses a value up to `end`; -1 if invalid. */
static int
read_value(const char **at, char end, rlim_t *out)
{
    char digits[24];
    size_t n = strcspn(*at, ": ");
    int64_t v;
    if (n == 0 || n >= sizeof digits || ((*at)[n] != end && (*at)[n] != '\0'))
        return -1;
    memcpy(digits, *at, n);
    digits[n] = '\0';
    *at += n;
    if (strcmp(digits, "-") == 0)
        *out = RLIM_INFINITY;
    else if (parse_int(digits, 0, INT64_MAX, &v, NULL) == 0)
        *out = (rlim_t)v;
    else
        return -1;
    return 0;
}

static int
find(const char *name, size_t n)
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)
            return i;
    return -1;
}

int
rlimits_parse(const char *text, struct rlimits *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    for (const char *at = text; *at; at += *at == ' ') {
        size_t n = strcspn(at, "=");
        int i = find(at, n);
        const char *value = at + n + 1;
        struct rlimit r;
        if (i < 0 || at[n] != '=' || read_value(&value, ':', &r.rlim_cur) < 0 ||
            *value++ != ':' || read_value(&value, ' ', &r.rlim_max) < 0 ||
            r.rlim_cur > r.rlim_max)
            return err_set(e, ERR_USAGE, "'%.40s' is not a resource limit NAME=SOFT:HARD", at);
        out->of[i].is_set = true;
        out->of[i].value = r;
        at = value;
    }
    return 0;
}

/* RLIM_INFINITY is the greatest value of its type, so plain comparison works. */
void
rlimits_bound(struct rlimits *own, const struct rlimits *login)
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (login->of[i].is_set &&
            (!own->of[i].is_set || own->of[i].value.rlim_max > login->of[i].value.rlim_max))
            own->of[i] = login->of[i];
}

static int
apply_one(const struct rlimits *limits, int i)
{
    struct rlimit want = limits->of[i].value, have;
    __rlimit_resource_t which = (__rlimit_resource_t)i;
    if (!limits->of[i].is_set || setrlimit(which, &want) == 0)
        return 0;
    if (errno != EPERM || getrlimit(which, &have) < 0)
        return errno;
    want.rlim_max = have.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    return setrlimit(which, &want) == 0 ? 0 : errno;
}

int
rlimits_apply(const struct rlimits *limits)
{
    int why = 0;
    for (int i = 0; i < RLIM_NLIMITS && why == 0; i++) {
        struct rlimit have;
        if (i != RLIMIT_FSIZE) {
            why = apply_one(limits, i);
            continue;
        }
        /* Raising the hard limit needs privileges that are about to be dropped. */
        if (limits->of[i].is_set && getrlimit(RLIMIT_FSIZE, &have) == 0 &&
            limits->of[i].value.rlim_max > have.rlim_max) {
            have.rlim_max = limits->of[i].value.rlim_max;
            (void)setrlimit(RLIMIT_FSIZE, &have);
        }
    }
    return why;
}

int
rlimits_apply_fsize(const struct rlimits *limits)
{
    return apply_one(limits, RLIMIT_FSIZE);
}
