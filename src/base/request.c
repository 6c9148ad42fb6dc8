/* A request's defaults and its end. Called by every door that builds one and by the job
 * that owns one. */
#include "base/request.h"

#include <stdlib.h>
#include <string.h>

/* demand is compared with memcmp, so nothing of it may be left to the compiler. */
_Static_assert(sizeof(struct demand) == 48, "struct demand has no hidden padding");

void
demand_init(struct demand *d)
{
    memset(d, 0, sizeof(*d));
    d->gpus = 1;
}

void
request_init(struct request *r)
{
    memset(r, 0, sizeof(*r));
    demand_init(&r->demand);
    r->oom_retries = -1;
    r->grace_ms = GRACE_DEFAULT_MS;
}

void
request_free(struct request *r)
{
    if (!r)
        return;
    free(r->name);
    free(r->command);
    free(r->log);
    for (char **arg = r->argv; arg && *arg; arg++)
        free(*arg);
    free(r->argv);
    r->name = r->command = r->log = NULL;
    r->argv = NULL;
}
