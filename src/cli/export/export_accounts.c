/* Users and their limits as commands for sacctmgr: one account, "berth", with every user that
 * has jobs here. The limits for all users together become the account's. */
#include <string.h>

#include "base/buf.h"
#include "cli/common/quote.h"
#include "cli/export/export_priv.h"
#include "spec/config.h"

struct limits {
    int64_t running, gpus, vram_mib, pending;
};

/* Adds " GrpJobs=4 ...", omitting limits that are not set. */
/* Slurm's limit on submitted jobs includes running jobs, so without a limit on those, the
 * limit on pending jobs has no counterpart. */
static void
add_limits(struct buf *out, const struct limits *l)
{
    if (l->running > 0)
        buf_addf(out, " GrpJobs=%lld", (long long)l->running);
    if (l->gpus > 0)
        buf_addf(out, " GrpTRES=gres/gpu=%lld", (long long)l->gpus);
    if (l->pending > 0 && l->running > 0)
        buf_addf(out, " GrpSubmitJobs=%lld", (long long)l->pending + (long long)l->running);
}

static const struct config_user *
find_user(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_users; i++)
        if (strcmp(c->users[i].name, name) == 0)
            return &c->users[i];
    return NULL;
}

static int64_t
own(const struct config_user *u, int64_t theirs, int64_t everyones)
{
    return u && theirs >= 0 ? theirs : everyones;
}

static void
add_user(struct buf *out, const struct config *c, const char *name)
{
    const struct config_user *u = find_user(c, name);
    struct limits l = {own(u, u ? u->max_running : 0, c->user_max_running),
                       own(u, u ? u->max_gpus : 0, c->user_max_gpus),
                       own(u, u ? u->max_vram_mib : 0, c->user_max_vram_mib),
                       own(u, u ? u->max_pending : 0, c->user_max_pending)};

    buf_adds(out, "sacctmgr -i add user ");
    quote_add(out, name);
    buf_adds(out, " account=berth");
    if (u && u->weight > 0 && u->weight != 1)
        buf_addf(out, " fairshare=%.0f", u->weight * 100 < 1 ? 1 : u->weight * 100);
    else
        buf_adds(out, " fairshare=100");
    add_limits(out, &l);
    buf_adds(out, "\n");
    if (l.pending > 0 && l.running == 0)
        buf_addf(out,
                 "# user_max_pending of %s, %lld: Slurm has no limit on pending jobs alone; "
                 "GrpSubmitJobs counts running ones too\n",
                 name, (long long)l.pending);
    if (l.vram_mib > 0)
        buf_addf(out,
                 "# user_max_vram_mib of %s, %lld: Slurm has no limit on VRAM; "
                 "GrpTRES=gres/shard=N is one on shards\n",
                 name, (long long)l.vram_mib);
}

void
export_accounts(const struct export_data *x, const struct config *config, struct buf *out)
{
    struct limits all = {config->max_running, config->max_gpus, config->max_vram_mib, 0};

    buf_adds(out, "#!/bin/bash\n"
                  "# Users and limits for slurmdbd. Limits hold where slurm.conf says\n"
                  "# AccountingStorageEnforce=limits.\n"
                  "sacctmgr -i add account berth Description=berth Organization=berth");
    add_limits(out, &all);
    buf_adds(out, "\n");
    if (all.vram_mib > 0)
        buf_addf(out,
                 "# max_vram_mib, %lld: Slurm has no limit on VRAM; GrpTRES=gres/shard=N is "
                 "one on shards\n",
                 (long long)all.vram_mib);
    for (size_t i = 0; i < x->n_users; i++)
        add_user(out, config, x->users[i]);
}
