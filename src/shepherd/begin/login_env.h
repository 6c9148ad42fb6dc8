/* Runs a job in a login environment: --login. */
#ifndef SHEPHERD_BEGIN_LOGIN_ENV_H
#define SHEPHERD_BEGIN_LOGIN_ENV_H

#include <stdbool.h>

struct identity;

/* True if bash reads the login profiles for users of this shell. */
bool login_is_read_by_bash(const char *shell);

/* argv preceded by a login shell that reads its profiles and then executes the command. The
 * caller frees the list; its strings are borrowed. */
char **login_argv(const char *shell, char *const *argv);

/* env with HOME, USER, LOGNAME and SHELL from the account. Free the result with
 * login_env_free, which frees the new strings too. */
char **login_env(const struct identity *id, char *const *env);
void login_env_free(char **env);

#endif
