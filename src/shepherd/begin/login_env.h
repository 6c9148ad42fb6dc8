/* A job in the environment of a login: --login. */
#ifndef SHEPHERD_BEGIN_LOGIN_ENV_H
#define SHEPHERD_BEGIN_LOGIN_ENV_H

#include <stdbool.h>

struct identity;

/* Whether bash, as a login shell, reads the profiles of those whose shell this is. */
bool login_is_read_by_bash(const char *shell);

/* argv behind a login shell that reads its profiles and then becomes the command. Strings of
 * argv and shell are borrowed, the list is the caller's. */
char **login_argv(const char *shell, char *const *argv);

/* env with HOME, USER, LOGNAME and SHELL as the account has them. What was made (owned) goes
 * with login_env_free. */
char **login_env(const struct identity *id, char *const *env);
void login_env_free(char **env);

#endif
