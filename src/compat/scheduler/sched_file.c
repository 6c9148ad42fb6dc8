/* Compares the jobs file with the known jobs. As in the original, a line seen once stays
 * queued when it is removed from the file, and a failed line is queued again when it is added
 * once more. Each error is reported once. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "compat/engine/compat_paths.h"
#include "compat/scheduler/scheduler.h"

#define JOBS_MAX_BYTES (256UL << 20)
#define SAVE_US        1000000        /* longest gap while an editor saves the file */
#define UTF8_MARK      "\xef\xbb\xbf" /* byte order mark of Windows editors */

static bool
is_script(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool
sched_script_allowed(char *const *allowed_paths, const char *script, struct buf *why)
{
    auto_free char *real = compat_real(script);

    if (!allowed_paths)
        return true;
    for (char *const *path = allowed_paths; real && *path; path++) {
        auto_free char *allowed = realpath(*path, NULL);
        size_t n = allowed ? strlen(allowed) : 0;

        if (n && strncmp(real, allowed, n) == 0 &&
            (real[n] == '/' || real[n] == '\0' || allowed[n - 1] == '/'))
            return true;
    }
    buf_addf(why, "the script %s lies outside of the allowed paths", real ? real : script);
    return false;
}

static void
complain(struct sched *s, enum sched_level level, int line, const char *text, const char *why)
{
    auto_free char *words = xasprintf("%s\n%s", text, why);

    if (sched_say_once(s, words))
        sched_log(&s->log, level, NULL, "%s line %d: %s: %s", s->config.jobs_file, line, why,
                  text);
}

static void
add_job(struct sched *s, struct sched_spec *spec, int line)
{
    struct sched_job *job;

    HASH_FIND_STR(s->jobs, spec->key, job);
    if (!job) {
        job = xcalloc(1, sizeof *job);
        job->spec = *spec;
        *spec = (struct sched_spec){0};
        HASH_ADD_STR(s->jobs, spec.key, job);
        job->line = line;
        s->sync_due = true;
        s->all_due |= !sched_comes_last(s, job);
    } else if (job->copies == 0 &&
               (job->spec.priority != spec->priority || job->line != line)) {
        job->spec.priority = spec->priority;
        job->line = line;
        if (job->status == SCHED_WAITING)
            sched_tell_all(s);
    }
    job->copies++;
    job->in_file = true;
    sched_spec_free(spec);
}

static void
take_line(struct sched *s, const char *text, size_t n, int number)
{
    const struct sched_rules rules = {
        &s->table, s->managed ? 64 - __builtin_clzll(s->managed) : 0, s->config.is_10x};
    auto_buf struct buf why = BUF_INIT;
    struct sched_spec spec;
    enum sched_line kind = sched_line_parse(text, n, &rules, &spec, &why);

    if (kind == SCHED_LINE_NOTHING)
        return;
    if (kind == SCHED_LINE_BAD) {
        auto_free char *words = xstrndup(text, n);

        complain(s, SCHED_ERROR, number, words, buf_str(&why));
        return;
    }
    if (why.len)
        complain(s, SCHED_WARNING, number, spec.text, buf_str(&why));
    buf_clear(&why);
    if (!is_script(spec.script)) {
        s->missing = true;
        complain(s, SCHED_ERROR, number, spec.text,
                 "there is no such script yet, so the job is not added");
        sched_spec_free(&spec);
    } else if (!sched_script_allowed(s->config.allowed_paths, spec.script, &why)) {
        complain(s, SCHED_ERROR, number, spec.text, buf_str(&why));
        sched_spec_free(&spec);
    } else {
        add_job(s, &spec, number);
    }
}

/* A user who adds an ended line again wants it to run again, whether or not the file still had
 * a copy. */
static void
note_copies(struct sched *s)
{
    int64_t now = clock_boot_us();

    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        bool is_back = job->left_us && now > job->left_us + SAVE_US;
        bool is_more = job->copies > job->said_copies || is_back;

        if (job->copies == 0) {
            job->left_us = job->left_us ? job->left_us : now;
            continue;
        }
        job->left_us = 0;

        if (is_more && job->said_copies > 0 && job->status == SCHED_FAILED) {
            job->status = SCHED_NEW;
            job->again = true;
            sched_tell_all(s);
            job->never = false;
        }
        job->said_copies = job->copies;
    }
}

void
sched_load(struct sched *s)
{
    auto_buf struct buf text = BUF_INIT;
    struct err why = {0};
    const char *at, *end;
    int number = 0;

    if (!s->config.jobs_file[0])
        return;
    (void)run_file_has_changed(&s->jobs_mark);
    s->missing = false;
    if (compat_read_regular(s->config.jobs_file, JOBS_MAX_BYTES, &text, &why) < 0) {
        if (sched_say_once(s, why.text))
            sched_log(&s->log, SCHED_WARNING, NULL, "%s", why.text);
        return;
    }
    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        job->copies = 0;
        job->in_file = false;
    }
    at = buf_str(&text);
    end = at + text.len;
    at += strncmp(at, UTF8_MARK, 3) == 0 ? 3 : 0;
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);

        take_line(s, at, n, ++number);
        at += n + 1;
    }
    note_copies(s);
}
