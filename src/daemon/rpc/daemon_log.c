/* The daemon's log, see daemon_log.h and base/log.h; and `log.level`, which changes the log
 * level until the settings are read again. Called by berthd.c and reload.c. */
#include "daemon/rpc/daemon_log.h"

#include <string.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "daemon/common/event_say.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "spec/config.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define MIB            (INT64_C(1) << 20)

static bool to_journal; /* process-wide, as in base/log.c */

int
logging_open(const char *path, bool to_file, struct err *e)
{
    if (to_file)
        return log_open(path, e);
    to_journal = log_use_journal(JOURNAL_SOCKET);
    return 0;
}

void
logging_apply(const struct config *c)
{
    log_set_level((enum log_level)c->log_level);
    log_set_format((enum log_format)c->log_format);
    log_set_rotation(c->log_max_mib * MIB, (int)c->log_keep);
}

const char *
logging_target(void)
{
    return log_path() ? "file" : to_journal ? "journal" : "stderr";
}

int
method_log_level(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    const char *name = json_string_value(json_object_get(params, "level"));
    enum log_level old = log_get_level(), new = old;
    if (json_object_get(params, "level") && (!name || log_level_from_name(name, &new) < 0))
        return err_set(e, ERR_USAGE,
                       "\"level\" must be \"error\", \"warn\", \"info\" or \"debug\"");
    if (name && roles_need_admin(c, "change the log level", e) < 0)
        return -1;
    if (new != old) {
        log_set_level(LOG_LEVEL_INFO); /* so that the change itself is always logged */
        log_info("event=log-level old=%s new=%s by=%s", log_level_name(old),
                 log_level_name(new), daemon_user_name(c->uid));
        log_set_level(new);
        struct jsonw *w = turn_event(rpc->inst, "daemon", NULL);
        jsonw_kstr(w, "state", "log_level");
        jsonw_kstr(w, "by", daemon_user_name(c->uid));
        jsonw_kstr(w, "old", log_level_name(old));
        jsonw_kstr(w, "new", log_level_name(new));
        turn_event_end(rpc->inst);
    }
    jsonw_object(out);
    jsonw_kstr(out, "old", log_level_name(old));
    jsonw_kstr(out, "new", log_level_name(new));
    jsonw_end_object(out);
    return 0;
}
