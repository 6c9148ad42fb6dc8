/* What an earlier gpusched had begun or queued: the daemon is asked for every line that the
 * journal has and that is not over there. What still runs is taken over, what has ended
 * meanwhile is settled with its true end, and nothing runs twice. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/compat/gpusched/gpusched.h"
#include "cli/render.h"
#include "wire/client.h"

/* What the daemon knows of the lines that the journal has and that are not over there. */
static int
ask_of_known(struct gpusched *g, json_t *lines, json_t **result, struct err *e)
{
    json_t *params = json_pack("{s:s,s:o,s:s,s:i,s:[]}", "path", g->sync_path, "jobs", lines,
                               "cwd", "/", "umask", 0, "env");

    return compat_call(&g->session, "file.plan", params, result, e);
}

static int
settle_ended(struct gpusched *g, json_t *ids, struct err *e)
{
    auto_json json_t *jobs = NULL;
    size_t i;
    json_t *object;

    if (compat_fetch(&g->session, ids, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        int64_t id = answer_int(object, "id", 0);
        struct gs_job *job;

        HASH_FIND(by_id, g->ids, &id, sizeof id, job);
        if (job)
            gs_adopt(g, job, object);
    }
    return 0;
}

int
gs_recall(struct gpusched *g, struct err *e)
{
    json_t *lines = json_array(), *ids = json_array();
    auto_json json_t *result = NULL;
    size_t i;
    json_t *line;

    for (i = 0; i < g->specs.n; i++) {
        const struct gs_spec *spec = &g->specs.at[i];

        if (spec->job->known && !spec->job->terminal)
            json_array_append_new(lines, json_pack("{s:s,s:s,s:i}", "key", spec->key, "command",
                                                   spec->command, "line", (int)i + 1));
    }
    g->fresh_due = json_array_size(lines) == 0;
    if (g->fresh_due) {
        json_decref(lines);
    } else if (ask_of_known(g, lines, &result, e) < 0) {
        json_decref(ids);
        return -1;
    }
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        struct gs_job *job;

        HASH_FIND_STR(g->jobs, answer_str(line, "key"), job);
        if (!job || !json_object_get(line, "id"))
            continue;
        gs_set_id(g, job, answer_int(line, "id", 0));
        if (render_state_is_final(answer_str(line, "state")))
            json_array_append_new(ids, json_integer(job->id));
        else
            job->was_running = false;
    }
    return settle_ended(g, ids, e);
}
