/* Whether an account may run jobs now, and within which limits, as a login of it would be
 * asked: for berth-user alone, as the answer comes from modules (PAM, nsswitch) that may
 * hang. */
#ifndef SHEPHERD_BEGIN_ACCOUNT_RULES_H
#define SHEPHERD_BEGIN_ACCOUNT_RULES_H

#include <stdbool.h>

#include "base/buf.h"

struct passwd;

#define ACCOUNT_TEXT_MAX 160

struct account_rules {
    const char *service; /* PAM's service, or the absolute path of its file; "": no PAM */
    bool locked_runs;    /* an account whose password is locked runs jobs all the same */
};

struct account_verdict {
    bool may_run;
    int errnum;                  /* why that could not be found out; 0: it was */
    char text[ACCOUNT_TEXT_MAX]; /* why it may not */
    struct buf limits;           /* owned: the limits of a login that PAM has set, as
                                    sys/rlimits.h writes them; "": none */
};

/* Called as root, before the process becomes the user. */
void account_check(const struct passwd *pw, const struct account_rules *rules,
                   struct account_verdict *out);

#endif
