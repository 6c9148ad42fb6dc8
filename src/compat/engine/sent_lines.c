/* Sends a file's lines to the daemon and takes its answers; see sent_lines.h. */
#include "compat/engine/sent_lines.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "cli/ask/answer.h"
#include "cli/ask/bulk.h"
#include "cli/ask/request_write.h"
#include "cli/table/render.h"
#include "compat/engine/compat_session.h"
#include "wire/client.h"

#define ROOM_US   10000000 /* no event reports room made by other users' jobs */
#define ROOM_SLOW 20       /* time between requests, as a multiple of what one takes */
#define ROOM_MIN  50000
#define NEW_MAX   1000 /* most lines the daemon does not have that go into one retry */

/* Values of session.heard other than a file's id; see compat_session.h. */
#define HEARD_ALL  0
#define HEARD_USER (-1)

static int
tell_line(struct bulk *b, const struct compat_session *s, struct compat_line *line,
          struct err *e)
{
    struct request r;
    int rc = 0;

    request_init(&r);
    if (s->front->fill(s->ctx, line->job, &r)) {
        struct jsonw *w = bulk_job(b);
        line->state = "";
        jobreq_add_fields(w, &r);
        jsonw_kstr(w, "key", line->key);
        jsonw_kint(w, "line", line->number);
        if (line->again)
            jsonw_kbool(w, "again", true);
        rc = bulk_next(b, e);
    }
    request_free(&r);
    return rc;
}

/* Send all lines the daemon has and at most `most` new ones. Returns 1 if there are more. */
static int
tell_lines(struct bulk *b, const struct compat_session *s, struct compat_line *lines, size_t n,
           size_t most, json_t **result, struct err *e)
{
    auto_free char *cwd = jobreq_current_folder(e);
    size_t fresh = 0;
    struct jsonw *w = &b->w;

    if (!cwd)
        return -1;
    jsonw_kstr(w, "path", s->path);
    jsonw_kbool(w, "fit", true);
    for (size_t i = 0; i < n; i++) {
        lines[i].state = NULL;
        lines[i].refused = false;
        if ((*lines[i].id || fresh++ < most) && tell_line(b, s, &lines[i], e) < 0)
            return -1;
    }
    w = bulk_rest(b);
    if (s->is_part)
        jsonw_kbool(w, "part", true);
    jobreq_add_context(w, cwd, NULL);
    return bulk_finish(b, result, e) < 0 ? -1 : fresh > most;
}

/* While lines are left out, any start or end of this user's jobs may make room. */
static int64_t
to_hear(const struct compat_session *s)
{
    return s->all_jobs ? HEARD_ALL : s->full && s->file ? HEARD_USER : s->file;
}

static int
listen_to(struct compat_session *s, struct err *e)
{
    int64_t heard = to_hear(s);
    const struct passwd *me = heard == HEARD_USER ? getpwuid(geteuid()) : NULL;
    json_t *kinds = json_array(), *params = json_pack("{s:b,s:o}", "follow", 1, "kinds", kinds);
    auto_json json_t *result = NULL;

    for (int i = 0; i < SESSION_KINDS_MAX && s->front->kinds[i]; i++)
        json_array_append_new(kinds, json_string(s->front->kinds[i]));
    if (heard > 0)
        json_object_set_new(params, "file", json_integer(heard));
    if (me)
        json_object_set_new(params, "user", json_string(me->pw_name));
    /* since 0 means from now on; without it, from the first event on, which is ours if we took
     * none. */
    if (s->seq > 0 || s->file == 0)
        json_object_set_new(params, "since", json_integer(s->seq));
    if (compat_call(s, "events", params, &result, e) < 0)
        return -1;
    if (s->seq == 0 && s->file == 0)
        s->seq = answer_int(result, "seq", 0);
    json_array_extend(s->events, json_object_get(result, "events"));
    s->listening = true;
    s->heard = heard;
    return 0;
}

/* Listen before sending, to miss no immediate start: the file's id is not known yet, so all
 * events are read. */
int
compat_listen(struct compat_session *s, struct err *e)
{
    return s->listening ? 0 : listen_to(s, e);
}

/* The daemon answers lines in the order they were sent. */
static int
take_lines(struct compat_session *s, struct compat_line *lines, size_t n, const json_t *result,
           struct err *e)
{
    json_t *answers = answer_list(result, "lines", e), *answer;
    size_t at = 0, i;

    if (!answers)
        return -1;
    json_array_foreach(answers, i, answer)
    {
        while (at < n && !lines[at].state)
            at++;
        if (at == n || strcmp(lines[at].key, answer_str(answer, "key")) != 0)
            return err_set(e, ERR_FAILED, "the daemon answers for another line");
        if (answer_bool(answer, "left")) {
            lines[at++].state = NULL;
            continue;
        }
        compat_bind(s, lines[at].id, answer_int(answer, "id", 0), lines[at].job);
        lines[at].state = render_state_static(answer_str(answer, "state"));
        if (s->front->entered)
            s->front->entered(s->ctx, lines[at].job, lines[at].state);
        at++;
    }
    return 0;
}

static void
take_refused(const struct compat_session *s, struct compat_line *lines, size_t n,
             const json_t *result)
{
    size_t at = 0, i;
    json_t *line;

    json_array_foreach(json_object_get(result, "refused"), i, line)
    {
        while (at < n && strcmp(lines[at].key, answer_str(line, "key")) != 0)
            at++;
        if (at == n)
            return;
        lines[at].refused = true;
        if (s->front->refused)
            s->front->refused(s->ctx, lines[at].job, answer_str(line, "error"));
    }
}

/* Sets when left-out lines are sent again; they were left out here, or by the daemon
 * (full). */
static void
take_full(struct compat_session *s, const char *full, bool left_here, int64_t began_us)
{
    int64_t now = clock_boot_us(), step = (now - began_us) * ROOM_SLOW;

    s->told_us = now;
    s->room_step_us = step > ROOM_MIN ? step : ROOM_MIN;
    s->room_us = full        ? now + (step > ROOM_US ? step : ROOM_US)
                 : left_here ? now + s->room_step_us
                             : 0;
    if (!full && left_here)
        return;
    free(s->full);
    s->full = full ? xstrdup(full) : NULL;
    s->full_said &= full != NULL;
}

int
compat_send(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e)
{
    auto_json json_t *result = NULL;
    int64_t began_us = clock_boot_us();
    struct bulk b;
    int more;

    if (compat_listen(s, e) < 0)
        return -1;
    bulk_begin(&b, s->link.client, "file.sync");
    more = tell_lines(&b, s, lines, n, s->full ? NEW_MAX : SIZE_MAX, &result, e);
    bulk_free(&b);
    if (more < 0)
        return -1;
    s->file = answer_int(result, "file", 0);
    if (take_lines(s, lines, n, result, e) < 0)
        return -1;
    take_refused(s, lines, n, result);
    take_full(s, json_string_value(json_object_get(result, "full")), more > 0, began_us);
    return s->heard != to_hear(s) ? listen_to(s, e) : 0;
}

int
compat_forget(struct compat_session *s, struct err *e)
{
    return compat_call(s, "file.sync",
                       json_pack("{s:s,s:b,s:[],s:b,s:b,s:s,s:i,s:[]}", "path", s->path,
                                 "first", 1, "jobs", "part", 1, "fresh", 1, "cwd", "/", "umask",
                                 0, "env"),
                       NULL, e);
}

int
compat_clear(struct compat_session *s, struct err *e)
{
    if (compat_send(s, NULL, 0, e) < 0 && e->code != ERR_NO_SPACE)
        return -1;
    s->front->take_events(s->ctx);
    return 0;
}

/* Returns the number of lines to run again; ids of jobs to fetch go to *look. Lines ended by
 * this very answer (refused) are not sent again: their event is on its way. */
static size_t
judge(const struct compat_session *s, struct compat_line *lines, size_t n, json_t *look)
{
    size_t again = 0;

    for (size_t i = 0; i < n; i++) {
        struct compat_line *line = &lines[i];
        enum compat_found found =
            line->state ? s->front->found(s->ctx, line->job, line->state) : COMPAT_WELL;

        line->again = found == COMPAT_AGAIN && !line->refused;
        again += line->again;
        if (found == COMPAT_LOOK)
            json_array_append_new(look, json_integer(*line->id));
    }
    return again;
}

int
compat_sync(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e)
{
    auto_json json_t *look = json_array();

    if (compat_send(s, lines, n, e) < 0)
        return -1;
    s->front->take_events(s->ctx);
    if (judge(s, lines, n, look) > 0) {
        json_array_clear(look);
        if (compat_send(s, lines, n, e) < 0)
            return -1;
        s->front->take_events(s->ctx);
        (void)judge(s, lines, n, look);
    }
    return compat_each(s, TAKE(look), e);
}

/* The daemon matches lines by key only; the command is a placeholder. */
static int
ask_what_is_known(struct compat_session *s, const struct compat_line *lines, size_t n,
                  json_t **result, struct err *e)
{
    struct bulk b;
    struct jsonw *w = bulk_begin(&b, s->link.client, "file.plan");
    int rc = 0;

    jsonw_kstr(w, "path", s->path);
    for (size_t i = 0; i < n && rc == 0; i++) {
        w = bulk_job(&b);
        jsonw_kstr(w, "command", ":");
        jsonw_kstr(w, "key", lines[i].key);
        jsonw_kint(w, "line", lines[i].number);
        rc = bulk_next(&b, e);
    }
    jsonw_kstr(bulk_rest(&b), "cwd", "/");
    if (rc == 0)
        rc = bulk_finish(&b, result, e);
    bulk_free(&b);
    return rc;
}

int
compat_recall(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *look, *answer;
    size_t i;

    if (n == 0)
        return 0;
    /* Listen first, so that an event reports a job that ends in between. */
    if (compat_listen(s, e) < 0 || ask_what_is_known(s, lines, n, &result, e) < 0)
        return -1;
    look = json_array();
    json_array_foreach(json_object_get(result, "lines"), i, answer)
    {
        int64_t id = answer_int(answer, "id", 0);
        const char *state = answer_str(answer, "state");

        if (i == n || strcmp(lines[i].key, answer_str(answer, "key")) != 0)
            break;
        if (!id)
            continue;
        s->front->known(s->ctx, lines[i].job, state);
        compat_bind(s, lines[i].id, id, lines[i].job);
        if (render_state_is_final(state) || render_state_is_active(state))
            json_array_append_new(look, json_integer(id));
    }
    return compat_each(s, look, e);
}
