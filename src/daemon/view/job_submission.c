/* All that is needed to submit a job again, elsewhere or with another scheduler: the request as
 * clients send it (docs/protocol.md), the folder and the umask. The environment, which many
 * jobs have in common, is a number here; the method `environment` has what it holds. */
#include <stddef.h>

#include "base/jsonw.h"
#include "core/queue/job.h"
#include "daemon/common/caller.h"
#include "daemon/request/roles.h"
#include "daemon/view/job_view.h"
#include "daemon/view/views.h"
#include "spec/attr.h"

/* For the job's owner and admins alone; null for others. */
void
jobjson_submission(const struct jobjson *x, struct jsonw *w)
{
    const struct job *job = x->job;
    const struct attr *a;

    if (!x->views->roles->caller || !roles_may_touch(x->views->roles->caller, job)) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_kobject(w, "request");
    for (size_t i = 0; (a = attr_at(i)); i++) {
        if (!a->key || !(a->is_said ? a->is_said(&job->req) : attr_is_said(a, &job->req)))
            continue;
        jsonw_key(w, a->key);
        attr_write(a, &job->req, w);
    }
    jsonw_end_object(w);
    jsonw_kstr(w, "cwd", job->cwd);
    jsonw_kint(w, "umask", job->umask_bits);
    jsonw_kint(w, "environment", job->env);
    jsonw_end_object(w);
}
