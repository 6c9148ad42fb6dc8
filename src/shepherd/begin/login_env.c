/* A login environment: see login_env.h. command.c calls this just before it creates the
 * command's process. The shell always gets the same script, with the command in arguments, so
 * no user text is parsed as shell code. */
#include "shepherd/begin/login_env.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "shepherd/begin/identity.h"

#define N_ACCOUNT 4

/* Shells that take -l, -c and "$@" as sh does; any other shell is replaced by sh. *as is its
 * argv[0], with the dash by which profiles recognise a login. */
static const char *
usable_shell(const char *shell, const char **as)
{
    static const char *const names[] = {"-sh", "-dash", "-bash", "-ksh", "-zsh"};
    const char *slash = shell ? strrchr(shell, '/') : NULL;
    *as = names[0];
    for (size_t i = 0; slash && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(slash + 1, names[i] + 1) == 0) {
            *as = names[i];
            return shell;
        }
    return "/bin/sh";
}

bool
login_is_read_by_bash(const char *shell)
{
    const char *as;
    (void)usable_shell(shell, &as);
    return strcmp(as, "-bash") == 0 || strcmp(as, "-sh") == 0 || strcmp(as, "-dash") == 0;
}

char **
login_argv(const char *shell, char *const *argv)
{
    const char *as, *program = usable_shell(shell, &as);
    const char *front[] = {program, "-l", "-c", "exec \"$@\"", as};
    const size_t n_front = sizeof front / sizeof front[0];
    const size_t n = text_list_len(argv);
    char **out = xcalloc(n_front + n + 1, sizeof *out);
    for (size_t i = 0; i < n_front; i++)
        out[i] = (char *)(uintptr_t)front[i];
    memcpy(out + n_front, argv, n * sizeof *out);
    return out;
}

/* The account's four variables come first, so that login_env_free knows which to free. */
char **
login_env(const struct identity *id, char *const *env)
{
    static const char *const account[] = {"HOME=", "USER=", "LOGNAME=", "SHELL=", NULL};
    size_t n = text_list_len(env), at = N_ACCOUNT;
    char **out = xcalloc(N_ACCOUNT + n + 1, sizeof *out);
    out[0] = xasprintf("HOME=%s", id->home);
    out[1] = xasprintf("USER=%s", id->name);
    out[2] = xasprintf("LOGNAME=%s", id->name);
    out[3] = xasprintf("SHELL=%s", id->shell);
    for (size_t i = 0; i < n; i++)
        if (!text_begins_with(env[i], account))
            out[at++] = env[i];
    return out;
}

void
login_env_free(char **env)
{
    for (size_t i = 0; env && i < N_ACCOUNT; i++)
        free(env[i]);
    free(env);
}
