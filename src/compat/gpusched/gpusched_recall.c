/* What an earlier gpusched had begun or queued: the daemon is asked for every line that the
 * journal has and that is not over there. What still runs is taken over, what has ended
 * meanwhile is settled with its true end, and nothing runs twice. Of what the original had
 * begun nobody knows more than that its processes are still there. */
#include <errno.h>
#include <signal.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/table/render.h"
#include "compat/gpusched/gpusched.h"
#include "sys/procs.h"

#define PID_SLACK_US 5000000 /* between what /proc says and what a file system says */

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

/* A leader that is younger than the journal that names it is another's, with the number again.
 */
static bool
is_group_alive(const struct gpusched *g, int64_t pgid)
{
    struct proc leader;

    if (pgid <= 1 || pgid > INT32_MAX || (kill((pid_t)-pgid, 0) < 0 && errno != EPERM))
        return false;
    return proc_read((pid_t)pgid, &leader) < 0 ||
           proc_began_us(&leader) < g->journal_us + PID_SLACK_US;
}

bool
gs_is_orphan(struct gpusched *g, struct gs_job *job)
{
    if (!job->was_running)
        return false;
    if (!is_group_alive(g, job->running_pgid)) {
        gs_note_interrupted(g, job);
        gs_say(g,
               "job %lld was interrupted mid-run by a previous scheduler's death — re-queuing",
               (long long)job->no);
        g->sync_due = true;
        return false;
    }
    if (!job->orphan_said)
        gs_warn(g,
                "job %lld is still running as an ORPHAN of a previous scheduler (pgid %lld) — "
                "not re-dispatching. Its exit code is unrecoverable; wait for it or kill it: "
                "kill -TERM -%lld",
                (long long)job->no, (long long)job->running_pgid, (long long)job->running_pgid);
    job->orphan_said = g->orphans = true;
    return true;
}
