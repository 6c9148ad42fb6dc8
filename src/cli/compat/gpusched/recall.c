/* What an earlier gpusched had begun or queued: the daemon is asked for every line that the
 * journal has and that is not over there. What still runs is taken over, what has ended
 * meanwhile is settled with its true end, and nothing runs twice. */
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/compat/gpusched/gpusched.h"
#include "cli/render.h"

static bool
on_known(void *gpusched, void *gs_job, int64_t id, const char *state)
{
    struct gs_job *job = gs_job;

    (void)gpusched;
    (void)id;
    if (!render_state_is_final(state))
        job->was_running = false;
    return true;
}

int
gs_recall(struct gpusched *g, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(g->specs.n + 1, sizeof *lines);
    struct compat_file file = gs_file(g);
    size_t n = 0;

    file.known = on_known;
    for (size_t i = 0; i < g->specs.n; i++) {
        struct gs_job *job = g->specs.at[i].job;

        if (job->known && !job->terminal)
            lines[n++] = (struct compat_line){
                .key = job->key, .number = (int)i + 1, .job = job, .id = &job->id};
    }
    return compat_recall(&g->session, &file, lines, n, e);
}
