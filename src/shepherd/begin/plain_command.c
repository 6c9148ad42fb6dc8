/* Decides which command lines need no shell: see plain_command.h. Accepts only what every
 * shell parses alike; anything doubtful is left to the shell. */
#include "shepherd/begin/plain_command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/search.h"

#define LINE_MAX_BYTES 4096

/* Characters without special meaning anywhere in a word but at its start. */
#define SAFE                                                                                   \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
    "_./,:@%+-="

/* Built-ins and keywords of a POSIX shell, dash or bash, in strcmp order. */
static const char *const builtins[] = {
    ".",       ":",       "alias",  "bg",      "bind",     "break",    "builtin",   "caller",
    "case",    "cd",      "chdir",  "command", "compgen",  "complete", "compopt",   "continue",
    "coproc",  "declare", "dirs",   "disown",  "do",       "done",     "echo",      "elif",
    "else",    "enable",  "esac",   "eval",    "exec",     "exit",     "export",    "false",
    "fc",      "fg",      "fi",     "for",     "function", "getopts",  "hash",      "help",
    "history", "if",      "in",     "jobs",    "kill",     "let",      "local",     "logout",
    "mapfile", "popd",    "printf", "pushd",   "pwd",      "read",     "readarray", "readonly",
    "return",  "select",  "set",    "shift",   "shopt",    "source",   "suspend",   "test",
    "then",    "time",    "times",  "trap",    "true",     "type",     "typeset",   "ulimit",
    "umask",   "unalias", "unset",  "until",   "wait",     "while",
};

static bool
is_builtin(const char *word)
{
    size_t n = sizeof builtins / sizeof *builtins;
    size_t at = search_first(i, n, strcmp(builtins[i], word) < 0);
    return at < n && strcmp(builtins[at], word) == 0;
}

/* Not an assignment, a shell job (%1), an option or an empty word. */
static bool
is_program(const char *word)
{
    return *word && !strchr("%-+", *word) && !strchr(word, '=') && !is_builtin(word);
}

/* Bash exports functions as BASH_FUNC_name%%, and /bin/sh may be bash. */
static bool
is_function(const char *word, char *const *env)
{
    static const char PREFIX[] = "BASH_FUNC_";
    size_t n = sizeof PREFIX - 1, len = strlen(word);
    for (; *env; env++)
        if (strncmp(*env, PREFIX, n) == 0 && strncmp(*env + n, word, len) == 0 &&
            (*env)[n + len] == '%')
            return true;
    return false;
}

char **
plain_command_words(const char *line, char *const *env)
{
    size_t len = strlen(line), n_words = 0;
    if (len >= LINE_MAX_BYTES || line[strspn(line, SAFE " ")])
        return NULL;
    for (const char *at = line; *at; at++)
        n_words += *at != ' ' && (at == line || at[-1] == ' ');
    char **words = xcalloc(1, (n_words + 1) * sizeof *words + len + 1);
    char *rest = memcpy(words + n_words + 1, line, len + 1);
    for (size_t i = 0; i < n_words; i++) {
        rest += strspn(rest, " ");
        words[i] = rest;
        rest += strcspn(rest, " ");
        if (*rest)
            *rest++ = '\0';
    }
    if (n_words > 0 && is_program(words[0]) && !is_function(words[0], env))
        return words;
    free(words);
    return NULL;
}

static bool
is_same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char **
plain_command_env(char *const *env, const char *folder, bool may_look)
{
    static const char NAME[] = "PWD=";
    size_t n = 0, at = 0, len = strlen(folder);
    for (bool found = false; env[n]; n++)
        if (!found && strncmp(env[n], NAME, sizeof NAME - 1) == 0) {
            const char *said = env[n] + sizeof NAME - 1;
            if (*said == '/' &&
                (strcmp(said, folder) == 0 || (may_look && is_same_folder(said, folder))))
                return NULL;
            found = true;
            at = n;
        } else if (!found) {
            at = n + 1;
        }
    char **out = xcalloc(1, (n + 2) * sizeof *out + sizeof NAME + len);
    memcpy(out, env, n * sizeof *out);
    out[at] = (char *)(out + n + 2);
    memcpy(out[at], NAME, sizeof NAME - 1);
    memcpy(out[at] + sizeof NAME - 1, folder, len + 1);
    return out;
}
