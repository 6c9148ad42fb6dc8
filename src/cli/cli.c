/* Words and data on their way out; see cli.h. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

__attribute__((format(printf, 1, 0))) static void
say(const char *fmt, va_list ap)
{
    auto_buf struct buf line = BUF_INIT;

    buf_adds(&line, "berth: ");
    buf_addv(&line, fmt, ap);
    buf_addc(&line, '\n');
    /* Nobody is left to be told when standard error is gone. */
    (void)file_write_all(STDERR_FILENO, line.data, line.len);
}

void
cli_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

int
cli_usage(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    return err_exit_status(ERR_USAGE);
}

int
cli_fail(const struct err *e)
{
    cli_say("%s", e->text);
    return err_exit_status(e->code);
}

int
cli_put(const struct buf *b)
{
    return b->len == 0 || file_write_all(STDOUT_FILENO, b->data, b->len) == 0 ? 0 : 1;
}

int
cli_put_json(const json_t *value)
{
    auto_buf struct buf out = BUF_INIT;
    auto_free char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    if (!text)
        return cli_usage("the daemon's answer cannot be written as JSON");
    buf_adds(&out, text);
    buf_addc(&out, '\n');
    return cli_put(&out);
}
