/* The native jobs file. Any bytes must give lines or errors, never both; lines that the
 * scheduler accepts; unique keys; and errors with a position. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/jobsfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_line(const struct jobsfile *f, size_t i)
{
    struct jobsfile_line *line = &f->lines[i];
    const char *command = line->req.command;
    size_t n = strlen(command);
    struct err e;

    if (n == 0 || strchr(" \t", command[0]) || strchr(" \t", command[n - 1]))
        err_abort("line %d: a command that is not stripped", line->line);
    if (!text_is_utf8(command, n, NULL))
        err_abort("line %d: a command that is not UTF-8", line->line);
    if (request_validate(&line->req, &e) < 0)
        err_abort("line %d: %s", line->line, e.text);
    if (i > 0 && line->line <= f->lines[i - 1].line)
        err_abort("line %d after line %d", line->line, f->lines[i - 1].line);
    for (size_t j = i < 50 ? 0 : i - 50; j < i; j++)
        if (strcmp(line->key, f->lines[j].key) == 0)
            err_abort("lines %d and %d are both %s", f->lines[j].line, line->line, line->key);
}

/* A number from 1 at *p, followed by the expected text. */
static bool
step_over(const char **p, const char *behind)
{
    char *end;
    long n = strtol(*p, &end, 10);

    if (end == *p || n < 1 || strncmp(end, behind, strlen(behind)) != 0)
        return false;
    *p = end + strlen(behind);
    return true;
}

static void
check_error(const char *text)
{
    const char *p = text + strlen("jobs.txt:");

    if (strncmp(text, "jobs.txt:", strlen("jobs.txt:")) != 0 || !step_over(&p, ":") ||
        !step_over(&p, ": ") || !*p)
        err_abort("an error without its place: %s", text);
    if (!text_is_utf8(text, strlen(text), NULL))
        err_abort("an error that is not UTF-8");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobsfile f;
    struct err e;
    int rc = jobsfile_parse("jobs.txt", (const char *)data, size, NULL, &f, &e);

    if ((rc == 0) != (f.n_errors == 0) || (rc != 0 && f.n_lines != 0))
        err_abort("%d with %zu lines and %zu errors", rc, f.n_lines, f.n_errors);
    for (size_t i = 0; i < f.n_lines; i++)
        check_line(&f, i);
    for (size_t i = 0; i < f.n_errors; i++)
        check_error(f.errors[i]);
    jobsfile_free(&f);
    return 0;
}
