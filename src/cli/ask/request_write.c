/* Requests in wire format; see request_write.h. Default values are not sent, so that the
 * daemon's own defaults apply. */
#include "cli/ask/request_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/submit_env.h"
#include "spec/attr.h"
#include "spec/jobsfile.h"

void
jobreq_add_fields(struct jsonw *w, const struct request *r)
{
    const struct attr *a;

    for (size_t i = 0; (a = attr_at(i)); i++) {
        if (!a->key || !(a->is_said ? a->is_said(r) : attr_is_said(a, r)))
            continue;
        jsonw_key(w, a->key);
        attr_write(a, r, w);
    }
}

int
jobreq_check_folder(const char *cwd, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    if (text_is_utf8(cwd, strlen(cwd), NULL))
        return 0;
    text_add_safe(&shown, cwd, strlen(cwd), 0);
    return err_set(e, ERR_USAGE, "the name of the folder %s is not UTF-8; give it another name",
                   buf_str(&shown));
}

char *
jobreq_current_folder(struct err *e)
{
    auto_free char *here = getcwd(NULL, 0);

    if (!here && errno == ENOENT)
        err_set(e, ERR_USAGE,
                "the current folder has been removed; change to another one, or choose one "
                "with -D");
    else if (!here)
        err_errno(e, ERR_USAGE, errno, "cannot find out the current folder");
    else if (jobreq_check_folder(here, e) == 0)
        return TAKE(here);
    return NULL;
}

void
jobreq_add_context(struct jsonw *w, const char *cwd, const struct env_choice *env)
{
    mode_t bits = umask(0);

    umask(bits);
    jsonw_kstr(w, "cwd", cwd);
    jsonw_kint(w, "umask", bits);
    env_add(w, env);
}

void
jobreq_add_line(struct jsonw *w, const struct jobsfile_line *line)
{
    jobreq_add_fields(w, &line->req);
    jsonw_kstr(w, "key", line->key);
    jsonw_kint(w, "line", line->line);
}
