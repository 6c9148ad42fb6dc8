/* See event_unstored.h. */
#include "daemon/events/event_unstored.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/common/event_words.h"
#include "daemon/common/user_names.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/state/changes.h"
#include "daemon/turn/event_line.h"
#include "daemon/view/wait_reason.h"
#include "store/store.h"

static void
publish_unstored(struct server *server, const struct job *job, const char *kind, int64_t at_us,
                 const struct buf *object)
{
    auto_buf struct buf line = BUF_INIT;
    const struct store_event row = {.kind = kind,
                                    .at_us = at_us,
                                    .job = job->id,
                                    .file = job->file,
                                    .json = object->data,
                                    .json_len = object->len};
    event_line(&row, &line);
    server_publish(
        server,
        &(struct event_view){
            .kind = kind, .job = job->id, .file = job->file, .line = line.data, .n = line.len});
    server_publish_end(server);
}

static void
begin_unstored(struct jsonw *w, const struct job *job, struct buf *object)
{
    jsonw_init(w, object);
    jsonw_object(w);
    jsonw_kstr(w, "user", daemon_owner_name(job));
    jsonw_key(w, "command");
    events_write_command(w, job, 200);
}

void
event_launched_read(struct server *server, const struct queue *queue, const struct change *x)
{
    auto_buf struct buf object = BUF_INIT;
    struct jsonw w;
    const struct job *job = x->type == CHANGE_LAUNCHED ? queue_get(queue, x->job) : NULL;
    if (!job || !server_is_followed(server, "launched"))
        return;
    begin_unstored(&w, job, &object);
    jsonw_kint(&w, "attempt", job->run->number);
    if (job->run->sent.key[0]) {
        jsonw_kstr(&w, "on", "slurm");
        jsonw_kstr(&w, "slurm_job", job->run->sent.id[0] ? job->run->sent.id : NULL);
        jsonw_kstr(&w, "slurm_node", job->run->sent.node[0] ? job->run->sent.node : NULL);
    } else {
        jsonw_kint(&w, "pid", job->run->command_pid);
    }
    jsonw_end_object(&w);
    publish_unstored(server, job, "launched", x->at_us, &object);
}

void
event_waiting(struct server *server, struct views *views, const struct job *job)
{
    auto_buf struct buf text = BUF_INIT, object = BUF_INIT;
    struct blocked why;
    struct jsonw w;
    if (!server_is_followed(server, "waiting"))
        return;
    why_waits(views, job, &why, &text);
    begin_unstored(&w, job, &object);
    jsonw_kstr(&w, "reason", reason_name(why.reason));
    jsonw_kstr(&w, "text", buf_str(&text));
    jsonw_end_object(&w);
    publish_unstored(server, job, "waiting", clock_wall_us(), &object);
}
