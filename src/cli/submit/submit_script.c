/* Scripts for `submit`; see submit_script.h. The file is read here, with the user's rights;
 * spec/script.c interprets its lines. */
#include "cli/submit/submit_script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/submit/submit_options.h"
#include "spec/when.h"

void
submit_script_free(struct submit_script *s)
{
    free(s->path);
    free(s->interpreter);
    buf_free(&s->head);
}

/* Reads the beginning of a regular file, in whole lines. */
static bool
read_head(const char *path, struct buf *out)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char bytes[4096];
    struct stat st;
    ssize_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    while (out->len < SUBMIT_HEAD_BYTES &&
           ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            buf_add(out, bytes, (size_t)n);
    if (out->len >= SUBMIT_HEAD_BYTES) {
        const char *newline = memrchr(out->data, '\n', out->len);
        out->len = newline ? (size_t)(newline - out->data) : 0;
    }
    return out->len > 0;
}

char *
submit_find_in_path(const char *word, int mode)
{
    auto_free char *path = xstrdup(getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin");
    char *rest = path;

    while (rest) {
        const char *folder = strsep(&rest, ":");
        auto_free char *file = xasprintf("%s/%s", folder[0] ? folder : ".", word);

        if (access(file, mode) == 0)
            return TAKE(file);
    }
    return NULL;
}

bool
submit_is_program(const char *word)
{
    if (strchr(word, '/'))
        return access(word, X_OK) == 0;
    auto_free char *file = submit_find_in_path(word, X_OK);
    return file != NULL;
}

bool
submit_find_script(const char *word, struct submit_script *out)
{
    struct script seen;
    struct request scratch;
    struct when_clock clock;
    int lines;

    if (strpbrk(word, " \t\n") || !text_is_utf8(word, strlen(word), NULL) ||
        !read_head(word, &out->head) || memchr(out->head.data, '\0', out->head.len))
        return false;
    submit_read_clock(&clock);
    request_init(&scratch);
    (void)script_read(word, out->head.data, out->head.len, &clock, NULL, &scratch, &seen, NULL);
    lines = seen.n_lines;
    out->interpreter = TAKE(seen.interpreter);
    script_free(&seen);
    request_free(&scratch);
    if (lines == 0 && (!out->interpreter || submit_is_program(word)))
        return false;
    out->shown = word;
    out->path = realpath(word, NULL);
    out->can_run = out->path && out->interpreter && access(out->path, X_OK) == 0;
    return out->path != NULL;
}

/* Prints one line for all ignored options. */
static void
say_ignored(const struct script *s)
{
    auto_buf struct buf names = BUF_INIT;

    for (size_t i = 0; i < s->ignored.n; i++)
        buf_addf(&names, "%s--%s", i ? ", " : "", s->ignored.at[i]);
    if (s->ignored.n)
        cli_say("%s: ignored, as %s nothing on one machine: %s", s->file,
                s->ignored.n == 1 ? "it means" : "they mean", buf_str(&names));
}

static void
say_all(const struct script_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        cli_say("%s", list->at[i]);
}

/* Prints errors and unsupported options; 2 if any of them may not be ignored. */
static int
judge(const struct script *s, bool ignore)
{
    say_all(&s->errors);
    if (s->unsupported.n && !ignore && !s->errors.n) {
        say_all(&s->unsupported);
        return cli_usage("nothing was queued; --ignore-unsupported continues without %s",
                         s->unsupported.n == 1 ? "that line" : "those lines");
    }
    for (size_t i = 0; i < s->unsupported.n; i++)
        cli_say("%s%s", s->unsupported.at[i], ignore ? " (ignored)" : "");
    if (!s->errors.n) {
        say_all(&s->notes);
        say_ignored(s);
    }
    return s->errors.n ? 2 : 0;
}

int
submit_take_words(const struct script *s, struct submit_words *words, struct err *e)
{
    if (s->export && env_export(&words->env, s->export, e) < 0)
        return err_prefix(e, "--export");
    for (size_t i = 0; i < s->variables.n; i++)
        if (env_set_slurm(&words->env, s->variables.at[i], e) < 0)
            return err_prefix(e, "%s", s->variables.at[i]);
    return 0;
}

int
submit_apply_script(struct submit_script *s, bool ignore, const struct request *over,
                    struct request *req, struct submit_words *words)
{
    struct when_clock clock;
    struct script script;
    struct err e = {0};
    int status;

    submit_read_clock(&clock);
    (void)script_read(s->shown, s->head.data, s->head.len, &clock, over, req, &script, &e);
    status = judge(&script, ignore);
    if (status == 0 && submit_take_words(&script, words, &e) < 0) {
        err_prefix(&e, "%s", s->shown);
        status = cli_fail(&e);
    }
    script_free(&script);
    return status;
}

/* "#!/usr/bin/env python3 -u" is a program and one argument, as in the kernel. */
static void
add_interpreter(const struct submit_script *s, char **argv, int *n)
{
    const char *line = s->interpreter ? s->interpreter : "/bin/sh";
    size_t len = strcspn(line, " \t");

    argv[(*n)++] = xstrndup(line, len);
    line += len + strspn(line + len, " \t");
    if (*line)
        argv[(*n)++] = xstrdup(line);
}

int
submit_script_command(const struct submit_script *s, struct request *req, char **words, int n)
{
    const char *slash = strrchr(s->path, '/');
    int at = 0;

    if (!text_is_utf8(s->path, strlen(s->path), NULL))
        return cli_usage("the name of the script's folder is not UTF-8; give it another name");
    req->argv = xcalloc((size_t)n + 3, sizeof *req->argv);
    if (!s->can_run)
        add_interpreter(s, req->argv, &at);
    req->argv[at++] = xstrdup(s->path);
    for (int i = 1; i < n; i++) {
        if (!text_is_utf8(words[i], strlen(words[i]), NULL))
            return cli_usage("argument %d of the script is not UTF-8; put it into the script",
                             i);
        req->argv[at++] = xstrdup(words[i]);
    }
    if (!req->name)
        req->name = xstrndup(slash + 1, 128);
    return 0;
}
