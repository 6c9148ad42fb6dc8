/* The exit record's two forms (file and message) and the `started` mark. The shepherd encodes,
 * the daemon decodes. A job of the same user can write to the folder, so decoding trusts
 * nothing: every field is checked for type and range. */
#include "sys/exitrec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "wire/members.h"

#define STARTED_MAX_BYTES 256 /* longest plausible started mark */

/* The outcomes that a shepherd can report. It reports LOST for a job that it ended because its
 * unit was stopped; otherwise LOST, and always NEVER_RAN, is the daemon's conclusion when
 * there is no record. */
static const struct {
    enum outcome outcome;
    const char *name;
} KNOWN[] = {
    {OUTCOME_LOST, "lost"},
    {OUTCOME_EXITED, "exited"},
    {OUTCOME_SIGNALED, "signaled"},
    {OUTCOME_TIMEOUT, "timeout"},
    {OUTCOME_CANCELLED, "cancelled"},
    {OUTCOME_PREEMPTED, "preempted"},
    {OUTCOME_REQUEUED, "requeued"},
    {OUTCOME_NOT_STARTED, "not_started"},
    {OUTCOME_SETUP_FAILED, "setup_failed"},
    {OUTCOME_EXCEEDED, "exceeded"},
};

static const char *const OOMS[] = {
    [OOM_NONE] = "none", [OOM_CUDA] = "cuda", [OOM_HOST] = "host"};

static const char *const BLAMES[] = {
    [BLAME_COMMAND] = "command", [BLAME_USER] = "user", [BLAME_MACHINE] = "machine",
    [BLAME_MPS] = "mps",         [BLAME_CAP] = "cap",   [BLAME_ACCOUNT] = "account"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *
outcome_word(enum outcome outcome)
{
    for (size_t i = 0; i < COUNT(KNOWN); i++)
        if (KNOWN[i].outcome == outcome)
            return KNOWN[i].name;
    err_abort("outcome %d has no place in an exit record", (int)outcome);
}

static void
put_int_or_null(struct jsonw *w, const char *key, int64_t v, bool is_null)
{
    if (is_null)
        jsonw_knull(w, key);
    else
        jsonw_kint(w, key, v);
}

void
exitrec_encode(const struct exitrec *r, const char *event, struct buf *out)
{
    const struct ending *en = &r->ending;
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    if (event)
        jsonw_kstr(&w, "event", event);
    jsonw_kint(&w, "version", 1);
    jsonw_kint(&w, "job", r->job);
    jsonw_kint(&w, "attempt", r->attempt);
    jsonw_kstr(&w, "boot_id", r->boot_id);
    jsonw_kstr(&w, "outcome", outcome_word(en->outcome));
    put_int_or_null(&w, "code", en->code, en->code < 0);
    put_int_or_null(&w, "signal", en->signal, en->signal == 0);
    put_int_or_null(&w, "errno", en->errno_value, en->errno_value == 0);
    jsonw_kstr(&w, "text", en->text);
    jsonw_kint(&w, "started_us", r->started_us);
    jsonw_kint(&w, "ended_us", en->ended_us);
    if (r->warned_us)
        jsonw_kint(&w, "warned_us", r->warned_us);
    jsonw_kint(&w, "run_ms", en->run_ms);
    put_int_or_null(&w, "cpu_ms", en->cpu_ms, en->cpu_ms < 0);
    put_int_or_null(&w, "max_rss_kib", en->max_rss_kib, en->max_rss_kib < 0);
    if (en->log_cut_bytes)
        jsonw_kint(&w, "log_cut_bytes", en->log_cut_bytes);
    jsonw_kstr(&w, "oom", OOMS[en->oom]);
    if (r->blame != BLAME_COMMAND)
        jsonw_kstr(&w, "blame", BLAMES[r->blame]);
    jsonw_kstr(&w, "by", r->by);
    jsonw_end_object(&w);
}

static int
get_outcome(const json_t *o, enum outcome *out, struct err *e)
{
    const char *name = json_string_value(json_object_get(o, "outcome"));
    for (size_t i = 0; name && i < COUNT(KNOWN); i++) {
        if (strcmp(KNOWN[i].name, name) == 0) {
            *out = KNOWN[i].outcome;
            return 0;
        }
    }
    return err_set(e, ERR_FAILED, "exit record: unknown outcome");
}

static int
get_oom(const json_t *o, enum oom_kind *out, struct err *e)
{
    const json_t *v = json_object_get(o, "oom");
    *out = OOM_NONE;
    if (!v || json_is_null(v))
        return 0;
    const char *name = json_string_value(v);
    for (size_t i = 0; name && i < COUNT(OOMS); i++) {
        if (strcmp(OOMS[i], name) == 0) {
            *out = (enum oom_kind)i;
            return 0;
        }
    }
    return err_set(e, ERR_FAILED, "exit record: 'oom' must be none, cuda or host");
}

/* A missing or unknown word (of a later version) blames the command. */
static enum blame
get_blame(const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "blame"));
    for (size_t i = 0; name && i < COUNT(BLAMES); i++)
        if (strcmp(BLAMES[i], name) == 0)
            return (enum blame)i;
    return BLAME_COMMAND;
}

/* An exit must have a code, a signal its number. */
static int
check_status(const struct ending *en, struct err *e)
{
    if (en->outcome == OUTCOME_EXITED && en->code < 0)
        return err_set(e, ERR_FAILED, "exit record: it exited, but has no code");
    if (en->outcome == OUTCOME_SIGNALED && en->signal == 0)
        return err_set(e, ERR_FAILED, "exit record: it was signalled, but has no signal");
    if (en->outcome == OUTCOME_SETUP_FAILED && en->code < 0 && en->signal == 0)
        return err_set(e, ERR_FAILED, "exit record: its set-up failed, but has no status");
    return 0;
}

static const struct member members[] = {
    {MEMBER(NUMBER, exitrec, job), .max = UINT32_MAX, .needed = true},
    {MEMBER(NUMBER, exitrec, attempt), .max = INT32_MAX, .needed = true},
    {MEMBER(NUMBER, exitrec, started_us), .max = INT64_MAX},
    {MEMBER(NUMBER, exitrec, warned_us), .max = INT64_MAX},
    {MEMBER(CHARS, exitrec, boot_id)},
    {MEMBER(CHARS, exitrec, by)},
    {MEMBER_AS("code", NUMBER, exitrec, ending.code), .max = 255},
    {MEMBER_AS("signal", NUMBER, exitrec, ending.signal), .min = 1, .max = 64},
    {MEMBER_AS("errno", NUMBER, exitrec, ending.errno_value), .min = 1, .max = 4095},
    {MEMBER_AS("ended_us", NUMBER, exitrec, ending.ended_us), .max = INT64_MAX, .needed = true},
    {MEMBER_AS("run_ms", NUMBER, exitrec, ending.run_ms), .max = INT64_MAX, .needed = true},
    {MEMBER_AS("cpu_ms", NUMBER, exitrec, ending.cpu_ms), .max = INT64_MAX},
    {MEMBER_AS("max_rss_kib", NUMBER, exitrec, ending.max_rss_kib), .max = INT64_MAX},
    {MEMBER_AS("log_cut_bytes", NUMBER, exitrec, ending.log_cut_bytes), .max = INT64_MAX},
    {MEMBER_AS("text", CHARS, exitrec, ending.text)},
    {0},
};

static int
decode_object(const json_t *o, struct exitrec *r, struct err *e)
{
    const json_t *version = json_object_get(o, "version");
    struct ending *en = &r->ending;
    struct err why;

    if (!json_is_integer(version) || json_integer_value(version) < 1)
        return err_set(e, ERR_FAILED, "exit record: no version");
    if (json_integer_value(version) != 1)
        return err_set(e, ERR_FAILED, "exit record: version %lld is newer than this program",
                       (long long)json_integer_value(version));
    en->code = -1;
    en->cpu_ms = en->max_rss_kib = -1;
    if (members_read(o, members, r, &why) < 0)
        return err_set(e, ERR_FAILED, "exit record: %s", why.text);
    r->blame = get_blame(o);
    if (get_outcome(o, &en->outcome, e) < 0 || get_oom(o, &en->oom, e) < 0)
        return -1;
    return check_status(en, e);
}

int
exitrec_decode(const char *json, size_t n, struct exitrec *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    if (n > EXITREC_MAX_BYTES)
        return err_set(e, ERR_FAILED, "exit record: longer than %d bytes", EXITREC_MAX_BYTES);
    json_error_t why;
    json_t *o = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    if (!o)
        return err_set(e, ERR_FAILED, "exit record: %s at byte %d", why.text, why.position);
    int rc = json_is_object(o) ? decode_object(o, out, e)
                               : err_set(e, ERR_FAILED, "exit record: not a JSON object");
    json_decref(o);
    return rc;
}

/* Reads up to size - 1 bytes from the start of a file and NUL-terminates them. Returns the
 * length; -1 with errno. */
static ssize_t
read_start(int fd, char *out, size_t size)
{
    size_t n = 0;
    while (n < size - 1) {
        ssize_t got = pread(fd, out + n, size - 1 - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    out[n] = '\0';
    return (ssize_t)n;
}

/* As read_start, for a regular file in the folder, without following a symbolic link. */
static ssize_t
read_small_at(int dirfd, const char *name, char *out, size_t size)
{
    auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? -1 : read_start(fd, out, size);
}

/* A note without a newline is incomplete, because its writer was stopped: no record. */
static int
read_note(int dirfd, struct exitrec *out, struct err *e)
{
    char bytes[EXITREC_HEAD_BYTES + 1];
    if (read_small_at(dirfd, "lock", bytes, sizeof bytes) < 0)
        return 0;             /* exitrec_started_at decides what this means */
    const char *note = bytes; /* a command that never started has no mark before the note */
    if (strncmp(bytes, EXITREC_NOTE, strlen(EXITREC_NOTE)) != 0) {
        note = strstr(bytes, "\n" EXITREC_NOTE);
        note = note ? note + 1 : NULL;
    }
    const char *end = note ? strchr(note, '\n') : NULL;
    if (!end)
        return 0;
    note += strlen(EXITREC_NOTE);
    return exitrec_decode(note, (size_t)(end - note), out, e) < 0 ? -1 : 1;
}

static int
read_any(int dirfd, struct exitrec *out, struct err *e)
{
    char bytes[EXITREC_MAX_BYTES + 2]; /* one byte more, to detect an oversized record */
    ssize_t n = read_small_at(dirfd, "exit", bytes, sizeof bytes);
    if (n < 0 && errno == ENOENT)
        return read_note(dirfd, out, e);
    if (n < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read the exit record");
    return exitrec_decode(bytes, (size_t)n, out, e) < 0 ? -1 : 1;
}

int
exitrec_read_at(int dirfd, uint32_t job, int32_t attempt, struct exitrec *out, struct err *e)
{
    int rc = read_any(dirfd, out, e);
    if (rc != 1 || (out->job == job && out->attempt == attempt))
        return rc;
    return err_set(e, ERR_FAILED,
                   "the exit record is that of job %" PRIu32 ", attempt %" PRId32, out->job,
                   out->attempt);
}

int
exitrec_note_offset(int lock_fd)
{
    char bytes[STARTED_MAX_BYTES];
    return read_start(lock_fd, bytes, sizeof bytes) < 0 ? -1 : (int)strlen(bytes);
}

size_t
exitrec_started_mark(int32_t pid, int64_t boot_us, char *out, size_t size)
{
    int n = snprintf(out, size, "started %" PRId32 "\nboot_us %" PRId64 "\nboot_id %s\n", pid,
                     boot_us, clock_boot_id());
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

int
exitrec_started_at(int dirfd, int32_t *pid, int64_t *boot_us, struct err *e)
{
    char bytes[STARTED_MAX_BYTES];
    ssize_t n = read_small_at(dirfd, "lock", bytes, sizeof bytes);
    if (n < 0 && errno == ENOENT)
        return 0;
    if (n < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read the attempt's lock file");
    /* A note without a mark before it: the command never started. */
    if (!bytes[0] || strncmp(bytes, EXITREC_NOTE, strlen(EXITREC_NOTE)) == 0)
        return 0;
    /* Any other content means that a command may have started, so an unreadable mark is an
     * error, never "not started". */
    int64_t at = -1;
    char boot_id[40] = "";
    int fields = sscanf(bytes, "started %" SCNd32 " boot_us %" SCNd64 " boot_id %39s", pid, &at,
                        boot_id);
    if (fields < 1 || *pid <= 0)
        return err_set(e, ERR_FAILED, "the attempt's lock file holds no 'started PID'");
    if (boot_us)
        *boot_us = fields == 3 && strcmp(boot_id, clock_boot_id()) == 0 ? at : -1;
    return 1;
}
