/* `report`: a summary of the history, in pieces (long_work.h), so that a history of a million
 * jobs delays no client by more than one piece. Nothing is deleted from the history meanwhile
 * (idle_work.c checks). The answer is sent when everything is added. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "daemon/common/instance.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/view/report_data.h"
#include "wire/members.h"

#define PIECE            250 /* jobs or attempts: about 2 ms */
#define BINS_DEFAULT     96
#define POINTS_DEFAULT   1000
#define COMMANDS_DEFAULT 50
#define COMMANDS_MOST    300

struct making {
    struct report report;
    struct store_place ended, used;
    bool ended_done, used_done;
};

static void
making_free(void *arg)
{
    struct making *x = arg;
    report_free(&x->report);
    free(x);
}

static void
on_ended(const struct store_ended *x, void *arg)
{
    report_add_ended(arg, x);
}

static void
on_used(const struct store_used *x, void *arg)
{
    report_add_used(arg, x);
}

/* Adds one piece. 1: all is added; -1: the store failed. */
static int
add_piece(struct instance *inst, struct making *x, struct err *e)
{
    int n;
    if (!x->ended_done) {
        n = store_ended_walk(inst->store, &x->ended, x->report.since_us, PIECE, on_ended,
                             &x->report, e);
        x->ended_done = n >= 0 && n < PIECE;
    } else {
        n = store_used_walk(inst->store, &x->used, x->report.from_us, PIECE, on_used,
                            &x->report, e);
        x->used_done = n >= 0 && n < PIECE;
    }
    return n < 0 ? -1 : x->ended_done && x->used_done;
}

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct making *x = arg;
    auto_buf struct buf text = BUF_INIT;
    int rc;
    (void)c;
    do
        rc = add_piece(rpc->inst, x, e);
    while (rc == 0 && clock_boot_us() < until_us);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    report_write(&x->report, &text);
    jsonw_raw(out, buf_str(&text), text.len);
    return WORK_DONE;
}

/* --- params --- */

static const struct {
    const char *name;
    unsigned part;
} parts[] = {
    {"user", REPORT_USERS},    {"command", REPORT_COMMANDS}, {"cause", REPORT_CAUSES},
    {"gpu", REPORT_GPUS},      {"wait", REPORT_WAITS},       {"point", REPORT_SCATTER},
    {"advice", REPORT_ADVICE},
};
#define N_PARTS (sizeof parts / sizeof parts[0])

static int
read_parts(const json_t *by, unsigned *out, struct err *e)
{
    size_t i;
    const json_t *name;
    *out = by ? 0 : ~0U;
    json_array_foreach(by, i, name)
    {
        const char *text = json_string_value(name);
        size_t k = 0;
        while (k < N_PARTS && (!text || strcmp(parts[k].name, text) != 0))
            k++;
        if (k == N_PARTS)
            return err_set(
                e, ERR_USAGE,
                "\"by\" takes user, command, cause, gpu, wait, point and advice, not \"%s\"",
                text ? text : "?");
        *out |= parts[k].part;
    }
    return 0;
}

/* The requested range, before it is cut to the possible. */
struct asked {
    int64_t since_us, until_us;
    int64_t bins, points, commands;
};

static const struct member members[] = {
    {MEMBER(NUMBER, asked, since_us), .max = INT64_MAX},
    {MEMBER(NUMBER, asked, until_us), .max = INT64_MAX},
    {MEMBER(NUMBER, asked, bins), .min = 1, .max = INT64_MAX},
    {MEMBER(NUMBER, asked, points), .min = 1, .max = INT64_MAX},
    {MEMBER(NUMBER, asked, commands), .min = 1, .max = INT64_MAX},
    {0},
};

static int
at_most(int64_t n, int most)
{
    return n < most ? (int)n : most;
}

static int
read_params(const json_t *params, struct report *r, struct err *e)
{
    const json_t *user = json_object_get(params, "user");
    int64_t now_us = clock_wall_us();
    struct asked asked = {.until_us = now_us,
                          .bins = BINS_DEFAULT,
                          .points = POINTS_DEFAULT,
                          .commands = COMMANDS_DEFAULT};
    if (members_read(params, members, &asked, e) < 0 ||
        read_parts(json_object_get(params, "by"), &r->parts, e) < 0)
        return -1;
    r->since_us = asked.since_us;
    r->until_us = asked.until_us < now_us ? asked.until_us : now_us;
    r->bins = at_most(asked.bins, REPORT_BINS_MAX);
    r->points = at_most(asked.points, REPORT_POINTS_MAX);
    r->commands_shown = at_most(asked.commands, COMMANDS_MOST);
    if (r->since_us > r->until_us)
        return err_set(e, ERR_USAGE, "\"since_us\" is after \"until_us\", or in the future");
    if (json_is_string(user))
        r->user = xstrdup(json_string_value(user));
    return 0;
}

/* Finds where the time axis begins: not before the first data. */
static int
find_beginning(struct instance *inst, struct report *r, struct err *e)
{
    int64_t first_us;
    if (store_past_begin(inst->store, &first_us, e) < 0)
        return -1;
    if (!first_us || first_us > r->until_us)
        first_us = inst->started_us < r->until_us ? inst->started_us : r->until_us;
    r->from_us = r->since_us > first_us ? r->since_us : first_us;
    return 0;
}

int
method_report(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    static const struct work_kind kind = {.step = step, .free = making_free, .past = true};
    struct making *x = xcalloc(1, sizeof *x);
    x->ended = x->used = (struct store_place)STORE_PLACE_NOW;
    x->report.inst = rpc->inst;
    x->report.uid = c->uid;
    x->report.admin = c->admin;
    if (read_params(params, &x->report, e) < 0 ||
        find_beginning(rpc->inst, &x->report, e) < 0) {
        making_free(x);
        return -1;
    }
    report_cards_begin(&x->report);
    x->used_done = !(x->report.parts & REPORT_GPUS);
    return work_begin(rpc, c, &kind, x, params, out, e);
}
