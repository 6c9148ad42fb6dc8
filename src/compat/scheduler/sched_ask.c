/* Shared by commands beside a running scheduler: connecting to its daemon, listing its jobs
 * and screen sessions, and making lines for the jobs file. None of this starts a daemon. */
#include <libgen.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "compat/engine/takeover.h"
#include "compat/scheduler/scheduler.h"
#include "wire/client.h"

static struct client *
connect_as(const json_t *owner)
{
    const struct cli cli = {.dir = json_string_value(json_object_get(owner, "dir")),
                            .socket = json_string_value(json_object_get(owner, "socket"))};

    return cli.dir || cli.socket ? connect_daemon(&cli, NULL) : connect_machine_or_own(&cli);
}

/* The daemon noted by the running scheduler, else the tool's own daemon if one was left. */
struct client *
sched_connect(const char *state_file)
{
    auto_json json_t *owner = sched_owner(state_file);
    auto_free char *for_dir = xstrdup(state_file);
    auto_free char *own = xasprintf("%s/.berth", dirname(for_dir));

    return owner ? connect_as(owner) : connect_trusted_at(own);
}

int
sched_check_left(const json_t *last, const struct client *now, const char *tag, struct err *e)
{
    auto_client struct client *then = last ? connect_as(last) : NULL;

    return compat_check_left(then, now, "tags", tag, e);
}

/* Only the last field may contain commas, and no field a line break. */
static int
check_field(const char *field, const char *apart, struct err *e)
{
    if (!field || !strpbrk(field, apart))
        return 0;
    return err_set(e, ERR_USAGE, "'%s' cannot stand in a line, which commas take apart", field);
}

/* Trailing empty fields are omitted, but priority and script are always there. */
int
sched_line_add(struct buf *out, int64_t priority, const char *script,
               const char *const fields[3], struct err *e)
{
    int last = 2;

    if (!*script)
        return err_set(e, ERR_USAGE, "it has no script");
    if (check_field(script, ",\r\n", e) < 0)
        return -1;
    while (last >= 0 && (!fields[last] || !fields[last][0]))
        last--;
    buf_addf(out, "%lld,%s", (long long)priority, script);
    for (int i = 0; i <= last; i++) {
        if (check_field(fields[i], i < 2 ? ",\r\n" : "\r\n", e) < 0)
            return -1;
        buf_addf(out, ",%s", fields[i] ? fields[i] : "");
    }
    buf_addc(out, '\n');
    return 0;
}

static const char *
my_name(void)
{
    const struct passwd *me = getpwuid(geteuid());

    return me ? me->pw_name : NULL;
}

json_t *
sched_objects(const json_t *rows, const json_t *fields)
{
    json_t *all = json_array(), *row, *name;
    size_t i, k;

    json_array_foreach(rows, i, row)
    {
        json_t *job = json_object();

        json_array_foreach(fields, k, name)
            json_object_set(job, json_string_value(name), json_array_get(row, k));
        json_array_append_new(all, job);
    }
    return all;
}

json_t *
sched_live_jobs(struct client *c, const char *tag, struct err *e)
{
    auto_json json_t *fields =
        json_pack("[s,s,s,s,s,s,s,s,s,s,s,s]", "id", "tags", "state", "command", "name",
                  "priority", "gpus", "submitted", "key", "run_ms", "log", "devices");
    auto_json json_t *result = NULL, *all = NULL;
    json_t *ours, *job;
    size_t i;

    if (client_call(c, "jobs", json_pack("{s:s*,s:O}", "user", my_name(), "fields", fields),
                    &result, e) < 0)
        return NULL;
    all = sched_objects(json_object_get(result, "rows"), fields);
    ours = json_array();
    json_array_foreach(all, i, job)
    {
        if (answer_has_word(json_object_get(job, "tags"), tag))
            json_array_append(ours, job);
    }
    return ours;
}

void
sched_add_screens(struct buf *out, struct client *c, const char *title, const char *none)
{
    auto_json json_t *result = NULL;
    int n = 0;
    size_t i;
    json_t *row, *params = json_pack("{s:s*,s:[s],s:[s]}", "user", my_name(), "state",
                                     "RUNNING", "fields", "screen_session");

    if (!c)
        json_decref(params);
    else if (client_call(c, "jobs", params, &result, NULL) == 0) {
        json_array_foreach(json_object_get(result, "rows"), i, row)
        {
            const char *session = json_string_value(json_array_get(row, 0));
            const char *dot = session ? strchr(session, '.') : NULL;

            if (!session)
                continue;
            if (n++ == 0)
                buf_adds(out, title);
            buf_addf(out, "%d. %s (Attach: screen -r %s)\n", n, dot ? dot + 1 : session,
                     dot ? dot + 1 : session);
        }
    }
    if (n == 0)
        buf_adds(out, none);
}
