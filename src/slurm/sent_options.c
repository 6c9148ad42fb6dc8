/* The part of a request that sbatch needs when Berth's supervisor runs the job there:
 * resources, a name, and a limit beyond our own. The rest is done by the supervisor (limit,
 * warning, logs, set-up) or the daemon (time of sending, retries, hooks, mail). Called by
 * daemon/slurm. */
#include "slurm/sent_options.h"

#include <string.h>

#include "base/buf.h"
#include "base/request.h"
#include "slurm/sbatch_options.h"
#include "spec/config.h"

/* Slurm's limit exceeds our own by this, so that the supervisor ends the command. */
#define LIMIT_MARGIN_MS 60000
#define MINUTE_MS       60000

static const char *
said(const char *setting)
{
    return setting[0] ? setting : NULL;
}

static int64_t
outer_limit_ms(const struct request *r)
{
    int64_t ms = r->limit_ms + request_grace_ms(r) + LIMIT_MARGIN_MS;
    return r->limit_ms > 0 ? (ms + MINUTE_MS - 1) / MINUTE_MS * MINUTE_MS : 0;
}

static void
add_words(const char *words, struct buf *out)
{
    for (words += strspn(words, " \t"); *words; words += strspn(words, " \t")) {
        size_t n = strcspn(words, " \t");
        buf_add(out, words, n);
        buf_addc(out, '\0');
        words += n;
    }
}

void
slurm_add_options(const struct request *r, bool with_name, const struct config *c,
                  struct buf *out)
{
    const struct sbatch_site site = {.shard_mib = (int32_t)c->slurm_shard_mib,
                                     .partition = said(c->slurm_partition),
                                     .account = said(c->slurm_account),
                                     .qos = said(c->slurm_qos)};
    struct sbatch_options options;
    struct request bare = request_standard;
    bare.demand = r->demand;
    bare.limit_ms = outer_limit_ms(r);
    bare.name = with_name && r->name ? r->name : (char[]){"berth"};
    sbatch_options_of(&bare, &site, &options);
    for (int i = 0; i < options.n_options; i++)
        buf_addz(out, options.options[i]);
    sbatch_options_free(&options);
    add_words(c->slurm_options, out);
}
