/* Detects likely mistakes before anything is queued: options that go to the program, shell
 * syntax that no shell reads, missing programs, and commands in Slurm scripts that do not work
 * here. Called by submit_verb.c. */
#include "cli/submit/submit_notes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/submit/submit_script.h"

/* Our options that programs seldom have themselves. */
static const char *const ours[] = {
    "vram",  "share",    "gpu-ids",     "gpu-type",   "min-vram", "cpus",       "mem",
    "after", "array",    "oom-retries", "on-timeout", "hold",     "time",       "retries",
    "begin", "max-load", "max-used",    "dry-run",    "unique",   "preemptible"};

static bool
is_ours(const char *word)
{
    size_t n = strcspn(word, "=");

    if (strncmp(word, "--", 2) != 0)
        return false;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strlen(ours[i]) == n - 2 && strncmp(word + 2, ours[i], n - 2) == 0)
            return true;
    return false;
}

/* True for $NAME, ${NAME}, and words that separate shell commands. */
static bool
is_shell(const char *word)
{
    static const char *const marks[] = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strcmp(word, marks[i]) == 0)
            return true;
    for (const char *p = strchr(word, '$'); p; p = strchr(p + 1, '$'))
        if (p[1] == '{' || (p[1] >= 'A' && p[1] <= 'Z'))
            return true;
    return false;
}

/* True if the program interprets a text argument: sh -c '...', perl -e. */
static bool
takes_text(char *const *words, int n)
{
    for (int i = 1; i < n; i++)
        if (words[i][0] == '-' && words[i][1] != '-' &&
            strpbrk(words[i], "ce")) /* also -lc, -ne */
            return true;
    return strstr(words[0], "awk") || strstr(words[0], "sed");
}

void
submit_note_words(char *const *words, int n, bool is_explicit, bool is_script)
{
    auto_buf struct buf shown = BUF_INIT, program = BUF_INIT;
    int i = 1;

    if (n < 2)
        return;
    text_add_safe(&program, words[0], strlen(words[0]), 60);
    while (!is_explicit && i < n && !is_ours(words[i]))
        i++;
    if (!is_explicit && i < n) {
        text_add_safe(&shown, words[i], strcspn(words[i], "="), 60);
        cli_say("%s is passed to %s; options of berth submit come before the command (write "
                "'--' before the command if that is intended)",
                buf_str(&shown), buf_str(&program));
    }
    if (is_script || takes_text(words, n))
        return;
    for (i = 1; i < n; i++) {
        if (!is_shell(words[i]))
            continue;
        buf_clear(&shown);
        text_add_safe(&shown, words[i], strlen(words[i]), 60);
        cli_say("'%s' is passed on unchanged, because a command of several words is not run by "
                "a shell; quote the whole line to use one, as in '%s ...'",
                buf_str(&shown), buf_str(&program));
        return;
    }
}

/* --- scripts for Slurm --- */

/* True if `module` is available. It is a shell function, so it must have been exported. */
static bool
has_modules(void)
{
    return getenv("BASH_FUNC_module%%") || getenv("BASH_FUNC_module()");
}

static bool
is_module(const char *line, size_t n)
{
    return (n > 7 && strncmp(line, "module ", 7) == 0) ||
           (n > 3 && strncmp(line, "ml ", 3) == 0);
}

/* True if `module` may be defined when the script runs: by a profile, or by a file that the
 * script reads. */
static bool
is_login_shell(const struct submit_script *s)
{
    const char *words = s->interpreter ? s->interpreter : "";

    return strstr(words, " -l") || strstr(words, " --login");
}

static bool
reads_another(const char *line, size_t n)
{
    return (n > 7 && strncmp(line, "source ", 7) == 0) ||
           (n > 2 && strncmp(line, ". ", 2) == 0);
}

/* The N of srun -N N, --nodes=N; 1 by default. */
static long
nodes_of_srun(const char *line, size_t n)
{
    auto_free char *copy = xstrndup(line, n);
    char *rest = copy, *word;
    bool next = false;

    if (strncmp(copy, "srun ", 5) != 0)
        return 1;
    while ((word = strsep(&rest, " \t"))) {
        if (next)
            return strtol(word, NULL, 10);
        next = strcmp(word, "-N") == 0 || strcmp(word, "--nodes") == 0;
        if (strncmp(word, "--nodes=", 8) == 0)
            return strtol(word + 8, NULL, 10);
        if (strncmp(word, "-N", 2) == 0 && word[2])
            return strtol(word + 2, NULL, 10);
    }
    return 1;
}

void
submit_note_script(const struct submit_script *s, const struct request *r)
{
    bool modules = has_modules() || is_login_shell(s) || r->login || r->env_setup;
    int line = 1;

    for (const char *p = s->head.data, *end = p + s->head.len; p && p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline ? newline : end) - p), blank = 0;
        while (blank < n && (p[blank] == ' ' || p[blank] == '\t'))
            blank++;
        modules |= reads_another(p + blank, n - blank);
        if (!modules && is_module(p + blank, n - blank)) {
            cli_say("%s:%d: 'module' does not exist here, so this line fails; use --conda or "
                    "--env-setup instead, or remove the line",
                    s->shown, line);
            modules = true; /* report it only once */
        }
        if (nodes_of_srun(p + blank, n - blank) > 1)
            cli_say("%s:%d: srun starts programs on this machine only, and refuses more nodes "
                    "than one",
                    s->shown, line);
        p = newline ? newline + 1 : end;
    }
}

/* --- programs --- */

/* The interpreter, by the program's name, as its content does not name one. */
static const char *
interpreter_of(const char *program)
{
    static const char *const known[][2] = {{".sh", "sh"},      {".bash", "bash"},
                                           {".py", "python3"}, {".pl", "perl"},
                                           {".R", "Rscript"},  {".jl", "julia"}};
    size_t n = strlen(program);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t len = strlen(known[i][0]);
        if (n > len && strcmp(program + n - len, known[i][0]) == 0)
            return known[i][1];
    }
    return "python3";
}

int
submit_check_program(const struct request *r, bool elsewhere)
{
    const char *program = r->argv ? r->argv[0] : NULL;
    bool later = r->n_deps > 0 || r->begin_us > 0 || r->hold;
    auto_buf struct buf shown = BUF_INIT, words = BUF_INIT;

    if (!program || elsewhere || r->container || submit_is_program(program))
        return 0;
    text_add_safe(&shown, program, strlen(program), 60);
    if (access(program, R_OK) < 0)
        buf_addf(&words, "program '%s' not found", buf_str(&shown));
    else
        buf_addf(&words, "'%s' is not executable; write its interpreter before it, as in %s %s",
                 buf_str(&shown), interpreter_of(program), buf_str(&shown));
    if (later) { /* the program may be created until then */
        cli_say("%s; the job fails if this is still so when it starts", buf_str(&words));
        return 0;
    }
    if (r->interactive) /* it is not meant to wait for the program */
        return cli_usage("%s", buf_str(&words));
    return cli_usage("%s; if it will exist later, submit the job with --hold or --after",
                     buf_str(&words));
}
