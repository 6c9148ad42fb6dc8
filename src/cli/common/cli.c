/* Output of messages and data; see cli.h. */
#include "cli/common/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "wire/json_text.h"

static int output_errno; /* why writing to standard output failed; 0: it did not */
static const char *program = "berth", *before_errors = "";

/* File names and the daemon's messages may contain anything, so each line is made safe. */
static void
add_lines_safe(struct buf *out, const struct buf *words)
{
    const char *at = buf_str(words);
    const char *end = at + words->len;

    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));

        text_add_safe(out, at, (size_t)((nl ? nl : end) - at), 0);
        if (!nl)
            return;
        buf_addc(out, '\n');
        at = nl + 1;
    }
}

void
cli_speak_as(const char *name, const char *error)
{
    program = name;
    before_errors = error;
}

__attribute__((format(printf, 2, 0))) static void
say(const char *before, const char *fmt, va_list ap)
{
    auto_buf struct buf words = BUF_INIT;
    auto_buf struct buf line = BUF_INIT;

    buf_addf(&line, "%s: %s", program, before);
    buf_addv(&words, fmt, ap);
    add_lines_safe(&line, &words);
    buf_addc(&line, '\n');
    /* If standard error fails, there is nowhere to report it. */
    (void)file_write_all(STDERR_FILENO, line.data, line.len);
}

void
cli_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
}

int
cli_usage(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(before_errors, fmt, ap);
    va_end(ap);
    return err_exit_status(ERR_USAGE);
}

int
cli_fail(const struct err *e)
{
    cli_say("%s%s", before_errors, e->text);
    return err_exit_status(e->code);
}

int
cli_write(const void *bytes, size_t n)
{
    int why;

    if (n == 0 || file_write_all(STDOUT_FILENO, bytes, n) == 0)
        return 0;
    why = errno;
    if (why != EPIPE && output_errno != why)
        cli_say("cannot write the output: %s", strerror(why));
    output_errno = why;
    return 1;
}

int
cli_output_status(void)
{
    return output_errno != 0 && output_errno != EPIPE;
}

int
cli_put(const struct buf *b)
{
    return cli_write(b->data, b->len);
}

int
cli_put_json(const json_t *value)
{
    auto_buf struct buf out = BUF_INIT;
    auto_free char *text = json_dumps(value, JSON_AS_SENT);

    if (!text)
        return cli_usage("the daemon's answer cannot be written as JSON");
    text_add_json(&out, text, strlen(text));
    buf_addc(&out, '\n');
    return cli_put(&out);
}

int
cli_put_answer(json_t *answer)
{
    json_object_set_new(answer, "version", json_integer(1));
    return cli_put_json(answer);
}
