/* `health`: whether all is well, one check after the other. */
#include "base/jsonw.h"
#include "daemon/rpc/checkup.h"
#include "daemon/rpc/methods.h"

int
method_health(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    (void)c;
    (void)params;
    (void)e;
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    checkup_write(rpc, out);
    jsonw_end_object(out);
    return 0;
}
