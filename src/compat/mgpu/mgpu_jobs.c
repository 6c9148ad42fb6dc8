/* mgpu's queue and cancel requests: lists running and pending jobs, and cancels one. */
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "compat/mgpu/mgpu.h"
#include "wire/client.h"

#define CANCEL_GRACE_MS 2000
#define CANCEL_WAIT_MS  10000

/* --- queue --- */

enum {
    COL_ID,
    COL_ARRAY,
    COL_TASK,
    COL_NAME,
    COL_USER,
    COL_GPUS,
    COL_MEM,
    COL_COMMAND,
    COL_STATE,
    COL_TAGS,
    COL_IDS, /* from here on only for clients of the original */
    COL_SETUP,
    COLS
};

#define COL_NAMES                                                                              \
    "id", "array_job", "array_task", "name", "user", "gpus_wanted", "vram_mib", "command",     \
        "state", "tags", "gpu_ids", "env_setup"

/* Jobs that mgpu did not submit are shown by Berth's id. */
static json_t *
id_of(const json_t *row, bool from_mgpu)
{
    const json_t *array = json_array_get(row, COL_ARRAY);

    if (from_mgpu)
        return json_incref(json_array_get(row, COL_NAME));
    if (json_is_integer(array))
        return json_sprintf("%lld_%lld", (long long)json_integer_value(array),
                            (long long)json_integer_value(json_array_get(row, COL_TASK)));
    return json_sprintf("%lld", (long long)json_integer_value(json_array_get(row, COL_ID)));
}

static json_t *
texts_of(const json_t *numbers)
{
    json_t *out;
    size_t i;
    json_t *n;

    if (json_array_size(numbers) == 0)
        return json_null();
    out = json_array();
    json_array_foreach(numbers, i, n)
        json_array_append_new(out, json_sprintf("%lld", (long long)json_integer_value(n)));
    return out;
}

static bool
is_waiting(const json_t *row)
{
    const char *state = json_string_value(json_array_get(row, COL_STATE));

    return state && (strcmp(state, "PENDING") == 0 || strcmp(state, "HELD") == 0);
}

/* The columns of mgpu_queue, in its order. */
static json_t *
shown_of(const json_t *row, bool mgpu, bool waits)
{
    bool said_mem = !mgpu || answer_has_word(json_array_get(row, COL_TAGS), MGPU_TAG_MEM);
    json_t *out = json_array(), *command = json_array_get(row, COL_COMMAND);

    json_array_append_new(out, id_of(row, mgpu));
    json_array_append(out, json_array_get(row, COL_USER));
    json_array_append(out, json_array_get(row, COL_GPUS));
    json_array_append_new(out,
                          said_mem ? json_incref(json_array_get(row, COL_MEM)) : json_null());
    json_array_append_new(out, json_is_string(command) ? json_incref(command)
                                                       : json_string("(private)"));
    json_array_append_new(out, json_string(waits ? "queued" : "running"));
    return out;
}

/* For clients of the original: an object with more members. */
static json_t *
object_of(const json_t *row, bool mgpu, bool waits)
{
    static const char *const names[] = {"id", "user", "gpus", "mem", "cmd", "status"};
    const char *setup = json_string_value(json_array_get(row, COL_SETUP));
    bool none = !setup || (mgpu && strcmp(setup, ":") == 0);
    auto_json json_t *shown = shown_of(row, mgpu, waits);
    json_t *out = json_object();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        json_object_set(out, names[i], json_array_get(shown, i));
    json_object_set_new(out, "gpu_ids", texts_of(json_array_get(row, COL_IDS)));
    json_object_set_new(out, "env_setup_cmd", none ? json_null() : json_string(setup));
    return out;
}

json_t *
mgpu_answer_queue(struct client *c, bool ours, struct err *e)
{
    static const char *const names[COLS] = {COL_NAMES};
    auto_json json_t *result = NULL;
    json_t *fields = json_array(), *queue, *running;
    size_t i;
    json_t *row;

    for (i = 0; i < (ours ? COL_IDS : COLS); i++)
        json_array_append_new(fields, json_string(names[i]));
    if (client_call(c, "jobs", json_pack("{s:o, s:s}", "fields", fields, "order", "turn"),
                    &result, e) < 0)
        return NULL;
    queue = json_array();
    running = json_array();
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        bool mgpu = answer_has_word(json_array_get(row, COL_TAGS), MGPU_TAG),
             waits = is_waiting(row);

        json_array_append_new(waits ? queue : running,
                              ours ? shown_of(row, mgpu, waits) : object_of(row, mgpu, waits));
    }
    return json_pack("{s:s, s:o, s:o}", "status", "ok", "queue", queue, "running", running);
}

/* --- cancel --- */

static bool
is_mgpu_id(const char *id)
{
    return strlen(id) == MGPU_ID_LEN &&
           strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == MGPU_ID_LEN;
}

/* berthd's selector for a job: jobs of mgpu have the id as their name, unique to the user;
 * others are selected by number, as mgpu_queue shows them. NULL: not a possible id. */
static json_t *
selector_of(const char *id)
{
    size_t n = strlen(id), digits = strspn(id, "0123456789_");

    if (is_mgpu_id(id))
        return json_sprintf("name:%s", id);
    if (n > 0 && n < 20 && digits == n && isdigit((unsigned char)id[0]))
        return json_string(id);
    return NULL;
}

/* The log was created on submission; a job that never ran leaves it empty. */
static void
drop_empty_log(const struct mgpu_user *u, const char *id)
{
    auto_free char *path = is_mgpu_id(id) ? mgpu_log_path(u, id) : NULL;
    struct stat st;

    if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        (void)unlink(path);
}

/* `ok` promises that the processes are gone. */
static void
await_end(struct client *c, const json_t *ids)
{
    json_t *select = json_array(), *id;
    size_t i;

    json_array_foreach(ids, i, id)
        json_array_append_new(select, json_sprintf("%lld", (long long)json_integer_value(id)));
    client_set_patience(c, CANCEL_WAIT_MS);
    (void)client_call(c, "wait", json_pack("{s:o}", "select", select), NULL, NULL);
}

/* berthd's message speaks of names and numbers that mgpu's users do not know. */
static json_t *
no_such_job(const json_t *id, struct err *e)
{
    err_set(e, ERR_NO_JOB, "no job %s%.40s waits or runs; mgpu_queue lists those that do",
            geteuid() == 0 ? "" : "of yours called ", json_string_value(id));
    return NULL;
}

json_t *
mgpu_answer_cancel(struct client *c, const struct mgpu_user *u, const json_t *request,
                   struct err *e)
{
    const json_t *id = json_object_get(request, "job_id");
    auto_json json_t *result = NULL;
    json_t *select, *ids;

    if (!json_is_string(id)) {
        err_set(e, ERR_USAGE, "cancel needs \"job_id\", a text");
        return NULL;
    }
    select = selector_of(json_string_value(id));
    if (!select)
        return no_such_job(id, e);
    if (client_call(c, "cancel",
                    json_pack("{s:[o], s:i}", "select", select, "grace_ms", CANCEL_GRACE_MS),
                    &result, e) < 0)
        return e->code == ERR_NO_JOB ? no_such_job(id, e) : NULL;
    ids = json_object_get(result, "ids");
    if (json_array_size(ids) == 0)
        return no_such_job(id, e);
    await_end(c, ids);
    drop_empty_log(u, json_string_value(id));
    return json_pack("{s:s}", "status", "ok");
}
