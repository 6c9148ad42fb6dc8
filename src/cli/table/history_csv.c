/* Writes ended jobs as the CSV of a workload; see history_verb.h. Times are whole seconds
 * after the first arrival. A job that requested a whole GPU gets the size of the GPU minus the
 * margin, so that nothing fits beside it; the estimate is its time limit or, if it had none,
 * its run time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/answer_pages.h"
#include "cli/ask/json_scan.h"
#include "cli/table/history_verb.h"
#include "cli/table/queue_columns.h"
#include "wire/client.h"

#define CARDS_MAX  64
#define MARGIN_MIB 512 /* the workloads' margin; see their README */

enum {
    IN_ID,
    IN_USER,
    IN_SUBMITTED,
    IN_RUN_MS,
    IN_LIMIT_MS,
    IN_WANTED,
    IN_VRAM,
    IN_SHARE,
    IN_GPUS,
    IN_ARRAY,
    INS
};

static const char *const in_fields[INS] = {"id",       "user",        "submitted", "run_ms",
                                           "limit_ms", "gpus_wanted", "vram_mib",  "share",
                                           "gpus",     "array"};

struct past {
    int64_t id, arrival_us, run_ms, limit_ms, gpus, vram_mib;
    char *user; /* owned */
};

struct pasts {
    struct past *v;
    size_t n, cap, left_out;
    int64_t card_mib[CARDS_MAX];
    int64_t largest_mib;
};

static void
pasts_free(struct pasts *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].user);
    free(p->v);
}

static int
read_cards(struct client *c, struct pasts *p, struct err *e)
{
    json_t *result = NULL;
    json_t *gpu;
    size_t i;

    if (client_call(c, "gpus", NULL, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1);
        int64_t mib = answer_int(gpu, "total_mib", 0);

        if (index >= 0 && index < CARDS_MAX)
            p->card_mib[index] = mib;
        if (mib > p->largest_mib)
            p->largest_mib = mib;
    }
    json_decref(result);
    return 0;
}

/* The size of the first GPU on which it ran; if unknown, of the largest GPU. */
static int64_t
card_of(const struct pasts *p, const struct scan_value *gpus)
{
    json_t *list = scan_tree(gpus);
    int64_t index = answer_int(json_array_get(list, 0), "index", -1);
    int64_t mib = index >= 0 && index < CARDS_MAX ? p->card_mib[index] : 0;

    json_decref(list);
    return mib > 0 ? mib : p->largest_mib;
}

static int64_t
demand_of(const struct pasts *p, const struct scan_value *v)
{
    int64_t vram = scan_int(&v[IN_VRAM], 0);
    int64_t card = card_of(p, &v[IN_GPUS]) - MARGIN_MIB;
    double share = v[IN_SHARE].type == SCAN_NUMBER ? strtod(v[IN_SHARE].text, NULL) : 1;

    if (vram > 0)
        return vram;
    return card > 0 ? (int64_t)((double)card * share) : 0;
}

static void
take_row(void *arg, const struct scan_value *v)
{
    struct pasts *p = arg;
    auto_buf struct buf user = BUF_INIT;
    struct past x = {.id = scan_int(&v[IN_ID], 0),
                     .arrival_us = queue_time_us(&v[IN_SUBMITTED]),
                     .run_ms = scan_int(&v[IN_RUN_MS], -1),
                     .limit_ms = scan_int(&v[IN_LIMIT_MS], 0),
                     .gpus = scan_int(&v[IN_WANTED], 0),
                     .vram_mib = demand_of(p, v)};

    if (v[IN_ARRAY].type == SCAN_OBJECT)
        return; /* skip the array: its tasks are listed */
    if (x.run_ms < 0 || x.gpus < 1 || x.vram_mib < 1) {
        p->left_out++;
        return;
    }
    scan_add(&user, &v[IN_USER]);
    x.user = buf_take(&user);
    p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
    p->v[p->n++] = x;
}

static int
by_arrival(const void *a, const void *b)
{
    const struct past *x = a;
    const struct past *y = b;

    if (x->arrival_us != y->arrival_us)
        return x->arrival_us < y->arrival_us ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int64_t
whole_seconds(int64_t ms)
{
    return ms > 1000 ? (ms + 999) / 1000 : 1;
}

/* Adds a user's login name without characters that could break a line of CSV. */
static void
add_user(struct buf *out, const char *user)
{
    for (; *user; user++)
        buf_addc(out, strchr(",\"\r\n", *user) ? '_' : *user);
}

static void
add_csv(const struct pasts *p, struct buf *out)
{
    buf_adds(out, "job_id,arrival_s,duration_s,est_s,gpus,vram_mib,user\n");
    for (size_t i = 0; i < p->n; i++) {
        const struct past *x = &p->v[i];
        int64_t duration = whole_seconds(x->run_ms);
        int64_t limit = x->limit_ms > 0 ? whole_seconds(x->limit_ms) : duration;

        buf_addf(out, "%lld,%lld,%lld,%lld,%lld,%lld,", (long long)x->id,
                 (long long)((x->arrival_us - p->v[0].arrival_us) / 1000000),
                 (long long)duration, (long long)(limit > duration ? limit : duration),
                 (long long)x->gpus, (long long)x->vram_mib);
        add_user(out, x->user);
        buf_addc(out, '\n');
    }
}

int
history_csv_add(struct client *c, json_t *params, int64_t limit, struct buf *out,
                size_t *left_out, struct err *e)
{
    struct pasts p = {0};
    json_t *fields = json_array();
    auto_buf struct buf text = BUF_INIT;
    int rc = -1;

    for (int i = 0; i < INS; i++)
        json_array_append_new(fields, json_string(in_fields[i]));
    json_object_set_new(params, "fields", fields);
    if (read_cards(c, &p, e) == 0 && pages_ask(c, json_incref(params), limit, &text, e) == 0) {
        scan_rows(text.data, text.len, INS, take_row, &p);
        if (p.n > 1)
            qsort(p.v, p.n, sizeof *p.v, by_arrival);
        add_csv(&p, out);
        *left_out = p.left_out;
        rc = 0;
    }
    pasts_free(&p);
    return rc;
}
