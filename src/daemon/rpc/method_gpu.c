/* `gpu.pause` and `gpu.resume`. GPUs are named by index, by UUID or its beginning, or all at
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/card_names.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"

static int
find_gpu(const struct instance *inst, const json_t *j, uint64_t *set, struct err *e)
{
    char digits[32];
    uint64_t chosen, present = cardnames_present(inst);
    if (json_is_integer(j))
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(j));
    const char *word = json_is_integer(j) ? digits : json_string_value(j);
    if (!word)
        return err_set(e, ERR_USAGE, "\"gpus\" must be a list of indices, UUIDs or \"all\"");
    if (strcmp(word, "all") == 0) {
        if (!present)
            return cardnames_refuse(inst, word, e);
        *set |= present;
        return 0;
    }
    if (!word[0] || strspn(word, "0123456789,-") != strlen(word)) {
        int card = cardnames_find(inst, word, e);
        if (card < 0)
            return -1;
        *set |= UINT64_C(1) << card;
        return 0;
    }
    if (parse_index_set(word, &chosen, NULL) < 0 || (chosen & ~present))
        return cardnames_refuse(inst, word, e);
    *set |= chosen;
    return 0;
}

static int
read_gpus(const struct instance *inst, const json_t *params, uint64_t *set, struct err *e)
{
    const json_t *list = json_object_get(params, "gpus");
    size_t i;
    const json_t *j;
    *set = 0;
    if (json_array_size(list) == 0)
        return err_set(e, ERR_USAGE, "name the GPUs: 0, 0-3, a UUID, or all");
    json_array_foreach(list, i, j)
    {
        if (find_gpu(inst, j, set, e) < 0)
            return -1;
    }
    return 0;
}

static void
write_jobs(const struct instance *inst, const struct card *c, struct jsonw *out)
{
    struct ids ids = {0};
    for (int i = 0; i < c->n_holds; i++) {
        const struct job *job = queue_get(inst->queue, c->holds[i].job);
        if (job)
            ids_add_job(&ids, job);
    }
    ids_write(out, "jobs", &ids);
    ids_free(&ids);
}

static void
write_gpus(const struct rpc *rpc, uint64_t set, struct jsonw *out)
{
    jsonw_object(out);
    jsonw_karray(out, "gpus");
    for (int i = 0; i < ledger_n_cards(rpc->inst->ledger); i++) {
        const struct card *c = ledger_card(rpc->inst->ledger, i);
        if (!(set >> i & 1))
            continue;
        jsonw_object(out);
        jsonw_kint(out, "index", i);
        jsonw_kstr(out, "uuid", c->info.uuid);
        jsonw_kstr(out, "state", gpu_state_name(card_state(c)));
        health_write(rpc->cards, i, out);
        write_jobs(rpc->inst, c, out);
        jsonw_end_object(out);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
}

int
method_gpu_pause(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    const json_t *reason = json_object_get(params, "reason");
    uint64_t set;
    if (roles_need_admin(c, "pause GPUs", e) < 0 || read_gpus(rpc->inst, params, &set, e) < 0)
        return -1;
    if (reason && !json_is_string(reason) && !json_is_null(reason))
        return err_set(e, ERR_USAGE, "\"reason\" must be text");
    const char *why = json_is_string(reason) ? json_string_value(reason) : "";
    if (strlen(why) >= HEALTH_TEXT_MAX)
        return err_set(e, ERR_USAGE,
                       "the maximum length of a reason is %d bytes; this one has %zu",
                       HEALTH_TEXT_MAX - 1, strlen(why));
    for (int i = 0; i < ledger_n_cards(rpc->inst->ledger); i++)
        if (set >> i & 1)
            health_pause(rpc->cards, i, json_is_true(json_object_get(params, "drain")),
                         daemon_user_name(c->uid), why);
    write_gpus(rpc, set, out);
    return 0;
}

/* Resumes all GPUs that can be; if one cannot, the answer is that error. */
int
method_gpu_resume(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                  struct err *e)
{
    uint64_t set;
    int rc = 0;
    if (roles_need_admin(c, "resume GPUs", e) < 0 || read_gpus(rpc->inst, params, &set, e) < 0)
        return -1;
    for (int i = 0; i < ledger_n_cards(rpc->inst->ledger); i++)
        if ((set >> i & 1) && health_resume(rpc->cards, i, daemon_user_name(c->uid), e) < 0)
            rc = -1;
    turn_touch(rpc->inst);
    if (rc == 0)
        write_gpus(rpc, set, out);
    return rc;
}
