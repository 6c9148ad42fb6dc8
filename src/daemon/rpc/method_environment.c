/* `environment`: the variables with which a job was submitted, for its owner and admins. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "store/store.h"

static int
load_environment(struct instance *inst, const struct caller *c, const struct job *job,
                 struct buf *block, struct err *e)
{
    if (!roles_may_touch(c, job))
        return err_set(e, ERR_PERMISSION, "job %s belongs to %s", job_words(job).text,
                       daemon_owner_name(job));
    return job->env ? store_env_get(inst->store, job->env, block, e) : 0;
}

int
method_environment(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                   struct err *e)
{
    int64_t id = json_integer_value(json_object_get(params, "job"));
    struct job *old = NULL;
    const struct job *job;
    auto_buf struct buf block = BUF_INIT;
    int rc;

    if (id < 1 || id > UINT32_MAX)
        return err_set(e, ERR_USAGE, "\"job\" must be the number of a job");
    job = queue_get(rpc->inst->queue, (uint32_t)id);
    if (!job)
        job = old = store_job_load(rpc->inst->store, (uint32_t)id, e);
    rc = job ? load_environment(rpc->inst, c, job, &block, e) : -1;
    job_free(old);
    if (rc < 0)
        return -1;
    jsonw_object(out);
    jsonw_karray(out, "env");
    for (const char *p = block.data; p && p < block.data + block.len; p += strlen(p) + 1)
        jsonw_str(out, p);
    jsonw_end_array(out);
    jsonw_end_object(out);
    return 0;
}
