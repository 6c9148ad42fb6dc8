/* `gpu.pause` and `gpu.resume`: what people say about cards. Cards are named by index, by
 * UUID or the beginning of one, or all at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/methods.h"

#define UUID_PREFIX_MIN 4 /* shorter ones are slips of the finger */

/* "there are 0-3", or how UUIDs begin. */
static int
no_such_gpu(const struct daemon *d, const char *word, struct err *e)
{
    int n = ledger_n_cards(d->ledger);
    if (n == 0)
        return err_set(e, ERR_USAGE, "no GPU '%.80s': this machine has no GPUs", word);
    if (n == 1)
        return err_set(e, ERR_USAGE, "no GPU '%.80s'; there is only gpu 0, %s", word,
                       ledger_card(d->ledger, 0)->info.uuid);
    return err_set(e, ERR_USAGE,
                   "no GPU '%.80s'; use 0-%d, a UUID or its beginning such as '%.12s', or all",
                   word, n - 1, ledger_card(d->ledger, 0)->info.uuid);
}

static int
find_by_uuid(const struct daemon *d, const char *word, uint64_t *set, struct err *e)
{
    size_t n = strlen(word);
    int found = -1;
    for (int i = 0; n >= UUID_PREFIX_MIN && i < ledger_n_cards(d->ledger); i++) {
        const char *uuid = ledger_card(d->ledger, i)->info.uuid;
        if (strncasecmp(uuid, word, n) != 0)
            continue;
        if (found >= 0 && uuid[n] != '\0')
            return err_set(e, ERR_USAGE,
                           "'%.80s' matches the UUIDs of gpu %d and gpu %d; write more of it",
                           word, found, i);
        found = i;
    }
    if (found < 0)
        return no_such_gpu(d, word, e);
    *set |= UINT64_C(1) << found;
    return 0;
}

static int
find_gpu(const struct daemon *d, const json_t *j, uint64_t *set, struct err *e)
{
    char digits[32];
    int n = ledger_n_cards(d->ledger);
    uint64_t chosen;
    if (json_is_integer(j))
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(j));
    const char *word = json_is_integer(j) ? digits : json_string_value(j);
    if (!word)
        return err_set(e, ERR_USAGE, "\"gpus\" must be a list of indices, UUIDs or \"all\"");
    if (strcmp(word, "all") == 0) {
        if (n == 0)
            return no_such_gpu(d, word, e);
        *set |= n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
        return 0;
    }
    if (!word[0] || strspn(word, "0123456789,-") != strlen(word))
        return find_by_uuid(d, word, set, e);
    if (parse_index_set(word, &chosen, NULL) < 0 || (n < 64 && chosen >> n != 0))
        return no_such_gpu(d, word, e);
    *set |= chosen;
    return 0;
}

static int
read_gpus(const struct daemon *d, const json_t *params, uint64_t *set, struct err *e)
{
    const json_t *list = json_object_get(params, "gpus");
    size_t i;
    const json_t *j;
    *set = 0;
    if (json_array_size(list) == 0)
        return err_set(e, ERR_USAGE, "name the GPUs: 0, 0-3, a UUID, or all");
    json_array_foreach(list, i, j)
    {
        if (find_gpu(d, j, set, e) < 0)
            return -1;
    }
    return 0;
}

static void
write_jobs(const struct daemon *d, const struct card *c, struct jsonw *out)
{
    struct ids ids = {0};
    for (int i = 0; i < c->n_holds; i++) {
        const struct job *job = queue_get(d->queue, c->holds[i].job);
        if (job)
            ids_add_job(&ids, job);
    }
    ids_write(out, "jobs", &ids);
    ids_free(&ids);
}

static void
write_gpus(const struct daemon *d, uint64_t set, struct jsonw *out)
{
    jsonw_object(out);
    jsonw_key(out, "gpus");
    jsonw_array(out);
    for (int i = 0; i < ledger_n_cards(d->ledger); i++) {
        const struct card *c = ledger_card(d->ledger, i);
        if (!(set >> i & 1))
            continue;
        jsonw_object(out);
        jsonw_kint(out, "index", i);
        jsonw_kstr(out, "uuid", c->info.uuid);
        jsonw_kstr(out, "state", gpu_state_name(card_state(c)));
        health_write(d, i, out);
        write_jobs(d, c, out);
        jsonw_end_object(out);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
}

int
method_gpu_pause(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    const json_t *reason = json_object_get(params, "reason");
    uint64_t set;
    if (roles_need_admin(c, "pause GPUs", e) < 0 || read_gpus(d, params, &set, e) < 0)
        return -1;
    if (reason && !json_is_string(reason) && !json_is_null(reason))
        return err_set(e, ERR_USAGE, "\"reason\" must be text");
    const char *why = json_is_string(reason) ? json_string_value(reason) : "";
    if (strlen(why) >= HEALTH_TEXT_MAX)
        return err_set(e, ERR_USAGE,
                       "the maximum length of a reason is %d bytes; this one has %zu",
                       HEALTH_TEXT_MAX - 1, strlen(why));
    for (int i = 0; i < ledger_n_cards(d->ledger); i++)
        if (set >> i & 1)
            health_pause(d, i, json_is_true(json_object_get(params, "drain")),
                         daemon_user_name(c->uid), why);
    write_gpus(d, set, out);
    return 0;
}

/* All that can be are resumed; one that cannot is the answer. */
int
method_gpu_resume(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                  struct err *e)
{
    uint64_t set;
    int rc = 0;
    if (roles_need_admin(c, "resume GPUs", e) < 0 || read_gpus(d, params, &set, e) < 0)
        return -1;
    for (int i = 0; i < ledger_n_cards(d->ledger); i++)
        if ((set >> i & 1) && health_resume(d, i, daemon_user_name(c->uid), e) < 0)
            rc = -1;
    turn_touch(d);
    if (rc == 0)
        write_gpus(d, set, out);
    return rc;
}
