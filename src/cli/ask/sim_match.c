/* Checks that a daemon has the simulated GPUs that --sim names: see sim_match.h. Called by the
 * verbs that can start a daemon, as --sim applies only when one is started. */
#include "cli/ask/sim_match.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "gpu/sim_spec.h"
#include "wire/client.h"

static bool
has_cards(const json_t *gpus, const struct sim_spec *spec)
{
    size_t i;
    json_t *gpu;

    if (json_array_size(gpus) != (size_t)spec->n)
        return false;
    json_array_foreach(gpus, i, gpu)
    {
        if (answer_int(gpu, "total_mib", 0) != spec->total_mib[i])
            return false;
    }
    return true;
}

/* Returns 0 also if the answer does not list the GPUs. */
static int
check(struct client *c, const char *sim, struct err *e)
{
    auto_json json_t *result = NULL;
    struct sim_spec spec;
    const json_t *gpus;

    if (sim_spec_parse(sim, &spec, e) < 0)
        return -1;
    if (client_call(c, "gpus", NULL, &result, NULL) < 0)
        return 0;
    gpus = json_object_get(result, "gpus");
    if (strcmp(answer_str(result, "backend"), "sim") != 0)
        return err_set(e, ERR_REFUSED,
                       "the running daemon uses real GPUs, not --sim %s; use a separate "
                       "instance to simulate: --dir DIR",
                       sim);
    if (has_cards(gpus, &spec))
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "the running daemon has other simulated GPUs (%zu) than --sim %s; omit --sim, stop it "
        "('berth daemon stop'), or use a separate instance: --dir DIR",
        json_array_size(gpus), sim);
}

struct client *
sim_match_connect(const struct cli *cli, const struct daemon_args *args, struct err *e)
{
    bool is_new;
    auto_client struct client *c = connect_or_start(cli, args, &is_new, e);

    if (!c || (!is_new && args->sim && check(c, args->sim, e) < 0))
        return NULL;
    return TAKE(c);
}
