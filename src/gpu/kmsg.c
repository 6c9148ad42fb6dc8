/* Records of the kernel's log: see kmsg.h. Called by berth-probe for every record, so most
 * lines are rejected after a few bytes. The messages differ between driver versions: older
 * ones omit "PCI:", the process, or the number. */
#include "gpu/kmsg.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The unread part. Nothing at or after end is accessed. */
struct reader {
    const char *at;
    const char *end;
};

static bool
take(struct reader *r, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* Reads digits up to max; false if there are none, or the number is larger. */
static bool
take_number(struct reader *r, int64_t max, int64_t *out)
{
    const char *start = r->at;
    int64_t v = 0;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        v = v * 10 + (*r->at - '0');
        if (v > max)
            return false;
        r->at++;
    }
    *out = v;
    return r->at > start;
}

/* Reads up to a stop character or the end; makes the text printable and truncates it. */
static void
take_text(struct reader *r, const char *stops, char *out, size_t size)
{
    size_t n = 0;

    while (r->at < r->end && !strchr(stops, *r->at)) {
        unsigned char c = (unsigned char)*r->at++;
        if (n + 1 < size)
            out[n++] = c < ' ' || c > '~' ? '?' : (char)c;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/* Reads "0000:3b:00" with or without ".0": hexadecimal digits in three groups. */
static bool
take_bus_id(struct reader *r, char *out)
{
    static const int widths[3][2] = {{4, 8}, {2, 2}, {2, 2}};
    size_t n = 0;

    for (int group = 0; group < 3; group++) {
        int digits = 0;
        if (group > 0 && !take(r, ":"))
            return false;
        if (group > 0)
            out[n++] = ':';
        for (; r->at < r->end && isxdigit((unsigned char)*r->at) && digits < widths[group][1];
             digits++)
            out[n++] = (char)tolower((unsigned char)*r->at++);
        if (digits < widths[group][0])
            return false;
    }
    out[n] = '\0';
    if (take(r, "."))
        r->at += r->at < r->end;
    return true;
}

/* "4,1234,5678901234,-;" The facility in the priority distinguishes the kernel's own lines
 * from those written by programs, which could contain anything. */
static bool
take_head(struct reader *r, int64_t *seq, bool *by_kernel)
{
    int64_t priority;

    if (!take_number(r, INT32_MAX, &priority) || !take(r, ",") ||
        !take_number(r, INT64_MAX / 16, seq) || !take(r, ","))
        return false;
    const char *text = memchr(r->at, ';', (size_t)(r->end - r->at));
    if (!text)
        return false;
    r->at = text + 1;
    *by_kernel = priority >> 3 == 0;
    return true;
}

static void
take_process(struct reader *r, struct kmsg_record *out)
{
    int64_t pid;

    if (take(r, "pid=")) {
        take(r, "'");
        if (take_number(r, INT32_MAX, &pid))
            out->pid = (int32_t)pid;
        char rest[KMSG_NAME_MAX]; /* "<unknown>'" */
        take_text(r, ",", rest, sizeof rest);
        take(r, ", ");
    }
    if (take(r, "name=")) {
        take_text(r, ",", out->name, sizeof out->name);
        take(r, ", ");
        if (out->name[0] == '<')
            out->name[0] = '\0';
    }
}

/* " GPU-I:05 GPU-CI:00", only one of them, or neither. */
static bool
take_instances(struct reader *r, struct kmsg_record *out)
{
    int64_t n;

    if (take(r, " GPU-I:")) {
        if (!take_number(r, INT32_MAX, &n))
            return false;
        out->gi = (int32_t)n;
    }
    if (take(r, " GPU-CI:")) {
        if (!take_number(r, INT32_MAX, &n))
            return false;
        out->ci = (int32_t)n;
    }
    return true;
}

/* After "NVRM: Xid": " (PCI:0000:3b:00): 79, pid=4711, name=python, words" */
static bool
take_xid(struct reader *r, struct kmsg_record *out)
{
    int64_t code;

    if (!take(r, " ("))
        return false;
    take(r, "PCI:");
    if (!take_bus_id(r, out->bus_id) || !take_instances(r, out) || !take(r, "): ") ||
        !take_number(r, 100000, &code))
        return false;
    out->kind = KMSG_XID;
    out->code = (int32_t)code;
    if (take(r, ", "))
        take_process(r, out);
    take_text(r, "", out->text, sizeof out->text);
    return true;
}

static bool
contains(const struct reader *r, const char *words)
{
    return memmem(r->at, (size_t)(r->end - r->at), words, strlen(words)) != NULL;
}

/* "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus." Some drivers log it without a
 * number. */
static bool
take_fallen(struct reader *r, struct kmsg_record *out)
{
    static const char fallen[] = "GPU has fallen off the bus.";

    if (!contains(r, "fallen off the bus"))
        return false;
    take(r, "The NVIDIA ");
    if (!take(r, "GPU "))
        return false;
    take(r, "at ");
    take(r, "PCI:");
    if (!take_bus_id(r, out->bus_id))
        return false;
    out->kind = KMSG_XID;
    out->code = KMSG_FELL_OFF;
    memcpy(out->text, fallen, sizeof fallen);
    return true;
}

int
kmsg_parse(const char *line, size_t n, struct kmsg_record *out)
{
    struct reader r = {line, line + n};

    *out = (struct kmsg_record){.gi = -1, .ci = -1};
    bool by_kernel;
    if (!take_head(&r, &out->seq, &by_kernel))
        return -1;
    if (!by_kernel || !take(&r, "NVRM: "))
        return 0;
    if (take(&r, "loading NVIDIA UNIX")) {
        out->kind = KMSG_DRIVER;
        return 0;
    }
    struct kmsg_record found = *out;
    struct reader start = r;
    if (take(&r, "Xid") ? take_xid(&r, &found) : take_fallen(&start, &found))
        *out = found;
    return 0;
}
