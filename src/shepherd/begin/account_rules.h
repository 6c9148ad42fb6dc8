/* Decides whether an account may run jobs now, and with which limits, by the rules for a
 * login. Only berth-user calls this, because the modules that answer (PAM, nsswitch) may
 * hang. */
#ifndef SHEPHERD_BEGIN_ACCOUNT_RULES_H
#define SHEPHERD_BEGIN_ACCOUNT_RULES_H

#include <stdbool.h>

#include "base/buf.h"

struct passwd;

#define ACCOUNT_TEXT_MAX 160

struct account_rules {
    const char *service; /* PAM's service, or the absolute path of its file; "": no PAM */
    bool locked_runs;    /* run jobs even if the account's password is locked */
};

struct account_verdict {
    bool may_run;
    int errnum;                  /* why the check itself failed; 0: it did not */
    char text[ACCOUNT_TEXT_MAX]; /* why the account may not */
    struct buf limits;           /* owned: the login's limits as set by PAM, in the format of
                                    sys/rlimits.h; "": none */
};

/* Call it as root, before the process changes to the user. */
void account_check(const struct passwd *pw, const struct account_rules *rules,
                   struct account_verdict *out);

#endif
