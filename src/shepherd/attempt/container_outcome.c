/* How a command in a container ended: see container_outcome.h. With podman, berth-init has
 * recorded it (container.h), because podman's exit status is ambiguous: 125 may be podman's
 * own (no such image) or the command's. Apptainer becomes the command; its own failures exit
 * with 255 and print a FATAL line after only its own lines. Called by outcome.c. */
#include "shepherd/attempt/container_outcome.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "shepherd/attempt/log_tail.h"
#include "shepherd/attempt/outcome.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/container.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/exitrec.h"

#define WHY_MAX         512 /* of a message of podman or Apptainer; the record keeps less */
#define SIGNAL_STATUS   128
#define SIGNAL_MAX      64
#define APPTAINER_FATAL 255
#define FATAL_START     "FATAL:   " /* Apptainer pads the level on each line */

/* The rest of the last line with this start, on one line; false: there is none. */
static bool
find_line(const char *log, const char *start, char *out, size_t size)
{
    const char *found = NULL;
    for (const char *at = log; (at = strstr(at, start)); at++)
        if (at == log || at[-1] == '\n')
            found = at + strlen(start);
    if (!found)
        return false;
    while (*found == ' ')
        found++;
    snprintf(out, size, "%.*s", (int)strcspn(found, "\r\n"), found);
    for (char *c = out; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
    return true;
}

/* Reads the end of standard error since the attempt began; returns its length. */
static size_t
read_errors(const struct command *c, char log[LOG_TAIL_BYTES + 1])
{
    size_t n = c->error_fd >= 0 ? log_tail_read(c->error_fd, c->error_from, log)
                                : log_tail_read(c->log_fd, c->log_from, log);
    log[n] = '\0';
    return n;
}

/* podman's last message; "" if none is found. */
static void
read_complaint(const struct facts *f, char *out, size_t size)
{
    char log[LOG_TAIL_BYTES + 1];
    out[0] = '\0';
    if (read_errors(f->command, log) > 0)
        (void)find_line(log, "Error:", out, size);
}

static bool
is_apptainers(const char *line)
{
    static const char *const levels[] = {
        FATAL_START, "ERROR:   ", "WARNING: ", "INFO:    ", "VERBOSE: ", "DEBUG:   ", NULL};
    return text_begins_with(line, levels);
}

/* True if Apptainer itself failed, and why: a command that has begun may end with the same
 * status and similar words, but after other output of its own. */
static bool
read_fatal(const struct facts *f, char *out, size_t size)
{
    const struct command *c = f->command;
    char log[LOG_TAIL_BYTES + 1], output[LOG_TAIL_BYTES];
    size_t n = read_errors(c, log);
    bool wrote = c->error_fd >= 0 && log_tail_read(c->log_fd, c->log_from, output) > 0;
    if (wrote || n == LOG_TAIL_BYTES)
        return false;
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (*line != '\n' && !is_apptainers(line))
            return false;
    return find_line(log, FATAL_START, out, size);
}

void
container_fill_status(const struct facts *f, struct ending *en)
{
    struct container_end end;
    if (f->command->mark_fd < 0)
        return;
    container_read_end(f->command->mark_fd, &end);
    bool killed = end.begun && end.code < 0 && en->code > SIGNAL_STATUS &&
                  en->code <= SIGNAL_STATUS + SIGNAL_MAX; /* range of berth-init's statuses */
    if (end.signal > 0 || killed) {
        en->signal = end.signal > 0 ? end.signal : en->code - SIGNAL_STATUS;
        en->code = -1;
        en->outcome = OUTCOME_SIGNALED;
    } else if (end.code >= 0) {
        en->code = end.code;
        en->signal = 0;
        en->outcome = OUTCOME_EXITED;
    }
}

static void
fail(struct ending *en, const char *what, const char *why)
{
    en->outcome = OUTCOME_SETUP_FAILED;
    if (en->code <= 0 && en->signal == 0)
        en->code = 125;
    auto_free char *text = xasprintf("%s%s%s", what, why[0] ? ": " : "", why);
    text_copy_cut(en->text, sizeof en->text, text);
}

/* The errno of a temporary shortage in a message of podman or Apptainer, which are written in
 * Go; 0: none. */
static int
passing_trouble(const char *words)
{
    static const struct {
        const char *words;
        int errnum;
    } troubles[] = {{"resource temporarily unavailable", EAGAIN},
                    {"cannot allocate memory", ENOMEM},
                    {"too many open files", EMFILE},
                    {"no space left on device", ENOSPC},
                    {"disk quota exceeded", EDQUOT},
                    {"input/output error", EIO},
                    {"read-only file system", EROFS}};
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
        if (strcasestr(words, troubles[i].words))
            return troubles[i].errnum;
    return 0;
}

/* Makes the job wait with the user's other jobs until the shortage is over. The user can write
 * the log and the mark, so the machine must not be blamed, or other users' jobs would wait
 * too. */
static void
excuse(struct exitrec *r, const char *what, int errnum, const char *why)
{
    struct ending *en = &r->ending;
    fail(en, what, why);
    en->outcome = OUTCOME_NOT_STARTED;
    en->code = -1;
    en->signal = 0;
    en->errno_value = errnum;
    r->blame = BLAME_USER;
}

/* The runtime failed before the command began. */
static void
fill_runtime(struct exitrec *r, const char *runtime, const char *why)
{
    int errnum = passing_trouble(why);
    if (errnum)
        excuse(r, runtime, errnum, why);
    else
        fail(&r->ending, runtime, why[0] ? why : "it ended before the command began");
}

bool
container_fill_failure(const struct facts *f, struct exitrec *r)
{
    const struct container *c = &f->spec->container;
    struct ending *en = &r->ending;
    struct container_end end;
    char why[WHY_MAX], what[120];
    if (c->apptainer) {
        if (en->code != APPTAINER_FATAL || !read_fatal(f, why, sizeof why))
            return false;
        fill_runtime(r, "apptainer", why);
        return true;
    }
    if (f->command->mark_fd < 0)
        return false;
    container_read_end(f->command->mark_fd, &end);
    if (end.begun && end.errnum == 0)
        return false;
    snprintf(what, sizeof what, "cannot execute '%.60s' in the image", f->spec->argv[0]);
    if (end.begun && blame_of(false, STEP_EXEC, end.errnum) != BLAME_COMMAND)
        excuse(r, what, end.errnum, strerror(end.errnum));
    else if (end.begun)
        fail(en, what, strerror(end.errnum));
    else if (end.trouble > 0)
        excuse(r, "cannot begin in the container", end.trouble, strerror(end.trouble));
    else {
        read_complaint(f, why, sizeof why);
        fill_runtime(r, "podman", why);
    }
    return true;
}
