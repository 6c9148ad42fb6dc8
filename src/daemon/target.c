/* Whom a request means: see target.h. Called by method_control.c, method_signal.c and others
 * of their kind. */
#include "daemon/target.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "core/job.h"
#include "daemon/daemon.h"
#include "daemon/methods.h"
#include "daemon/roles.h"

int
target_read(struct daemon *d, const struct caller *c, const json_t *params, struct select *s,
            struct err *e)
{
    if (select_read(d, c->uid, params, s, e))
        return -1;
    if (s->everything)
        return err_set(e, ERR_USAGE, "name the jobs: 12, 12-20, @, name:x*, or --all");
    return select_check_ids(d, s, e);
}

int
target_check_owner(const struct caller *c, const struct job *job, struct err *e)
{
    if (roles_may_touch(c, job))
        return 0;
    return err_set(e, ERR_PERMISSION, "job %u belongs to %s", job->id,
                   daemon_user_name(job->uid));
}

void
ids_add(struct ids *ids, uint32_t id)
{
    if (ids->n == ids->cap) {
        ids->cap = ids->cap ? ids->cap * 2 : 16;
        ids->v = xrealloc(ids->v, ids->cap * sizeof *ids->v);
    }
    ids->v[ids->n++] = id;
}

void
ids_write(struct jsonw *out, const char *key, const struct ids *ids)
{
    jsonw_key(out, key);
    jsonw_array(out);
    for (size_t i = 0; i < ids->n; i++)
        jsonw_int(out, ids->v[i]);
    jsonw_end_array(out);
}

void
ids_free(struct ids *ids)
{
    free(ids->v);
    *ids = (struct ids){0};
}
