/* slurm.conf and gres.conf for this machine as a cluster of one node, to which a site can add
 * nodes. A slurmctld can start with them unchanged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/export/export_priv.h"
#include "spec/config.h"

#define SHARD_MIB        1024  /* VRAM per shard */
#define ARRAY_SIZE_LEAST 1001  /* Slurm's default for MaxArraySize */
#define JOBS_LEAST       10000 /* and for MaxJobCount */
#define MEMORY_KEPT      5     /* percent, reserved for the system */

/* --- properties of the machine --- */

static bool
has_type(const struct export_machine *m, const char *type)
{
    for (char **t = m->types; *t; t++)
        if (strcmp(*t, type) == 0)
            return true;
    return false;
}

static void
note_types(const struct export_data *x, struct export_machine *m)
{
    size_t n = 0;

    m->types = xcalloc(x->n_cards + 1, sizeof *m->types);
    m->type_mib = xcalloc(x->n_cards + 1, sizeof *m->type_mib);
    for (size_t i = 0; i < x->n_cards; i++) {
        if (has_type(m, x->cards[i].name))
            continue;
        m->type_mib[n] = (int32_t)x->cards[i].mib;
        m->types[n++] = xstrdup(x->cards[i].name);
    }
}

/* Slurm gives each GPU the same number of shards, so GPUs of different sizes would get too
 * many or too few. */
static int32_t
shard_size(const struct export_data *x)
{
    for (size_t i = 1; i < x->n_cards; i++)
        if (x->cards[i].mib / SHARD_MIB != x->cards[0].mib / SHARD_MIB)
            return 0;
    return x->n_cards > 0 && x->cards[0].mib >= SHARD_MIB ? SHARD_MIB : 0;
}

int
export_look_at_machine(const struct export_data *x, struct export_machine *m, struct err *e)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (gethostname(m->host, sizeof m->host) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot find out the name of this machine");
    m->host[sizeof m->host - 1] = '\0';
    m->host[strcspn(m->host, ".")] = '\0';
    m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    m->memory_mib = pages / 1024 * page / 1024 * (100 - MEMORY_KEPT) / 100;
    m->shard_mib = shard_size(x);
    note_types(x, m);
    return 0;
}

void
export_machine_free(struct export_machine *m)
{
    text_list_free(m->types);
    free(m->type_mib);
}

/* --- gres.conf --- */

static size_t
count_type(const struct export_data *x, const char *type)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n_cards; i++)
        n += strcmp(x->cards[i].name, type) == 0;
    return n;
}

static int64_t
count_shards(const struct export_data *x, const struct export_machine *m)
{
    return m->shard_mib ? (int64_t)x->n_cards * (x->cards[0].mib / m->shard_mib) : 0;
}

void
export_gres_conf(const struct export_data *x, const struct export_machine *m, struct buf *out)
{
    buf_adds(out, "# GPUs, in the order of Berth's numbers.\n");
    if (x->simulated)
        buf_adds(out, "# They are simulated: slurmd needs devices of these names.\n");
    else if (x->n_cards > 0)
        buf_adds(out, "# Device N is NVIDIA's minor number: nvidia-smi -q | grep -i minor\n");
    for (size_t i = 0; i < x->n_cards; i++)
        buf_addf(out, "NodeName=%s Name=gpu Type=%s File=/dev/nvidia%zu\n", m->host,
                 x->cards[i].name, i);
    if (m->shard_mib)
        buf_addf(out,
                 "# A shard is 1 GiB of VRAM: --gres=shard:6 is a part of one GPU with 6 GiB.\n"
                 "NodeName=%s Name=shard Count=%lld\n",
                 m->host, (long long)count_shards(x, m));
}

/* --- slurm.conf --- */

static void
add_node(const struct export_data *x, const struct export_machine *m, struct buf *out)
{
    buf_addf(out, "NodeName=%s CPUs=%lld RealMemory=%lld", m->host, (long long)m->cpus,
             (long long)m->memory_mib);
    for (char **type = m->types; *type; type++)
        buf_addf(out, "%sgpu:%s:%zu", type == m->types ? " Gres=" : ",", *type,
                 count_type(x, *type));
    if (m->shard_mib)
        buf_addf(out, ",shard:%lld", (long long)count_shards(x, m));
    buf_adds(out, " State=UNKNOWN\n");
}

static void
add_partition(const struct config *config, struct buf *out)
{
    buf_adds(out, "PartitionName=main Nodes=ALL Default=YES State=UP");
    if (config->time_default_s)
        buf_addf(out, " DefaultTime=%lld", (long long)((config->time_default_s + 59) / 60));
    if (config->time_max_s)
        buf_addf(out, " MaxTime=%lld", (long long)((config->time_max_s + 59) / 60));
    buf_adds(out, "\n");
}

static void
add_sizes(const struct export_data *x, struct buf *out)
{
    int64_t tasks = ARRAY_SIZE_LEAST, jobs = 0;

    for (size_t i = 0; i < x->n; i++) {
        const struct task_set *t = &x->jobs[i].req.array;

        jobs += t->n ? task_set_count(t) : 1;
        if (t->n && t->ranges[t->n - 1].last >= tasks)
            tasks = t->ranges[t->n - 1].last + 1;
    }
    jobs = 2 * jobs > JOBS_LEAST ? 2 * jobs : JOBS_LEAST;
    buf_addf(out, "MaxArraySize=%lld\nMaxJobCount=%lld\n", (long long)tasks,
             (long long)(jobs > tasks ? jobs : tasks + 1));
}

void
export_slurm_conf(const struct export_data *x, const struct export_machine *m,
                  const struct config *config, struct buf *out)
{
    int64_t per_cpu = m->cpus > 0 ? m->memory_mib / m->cpus : 0;

    buf_addf(
        out,
        "# This machine as a cluster of one node. More nodes: more NodeName lines, here and in "
        "gres.conf.\n"
        "# Both files are the same on all nodes. Accounts and limits: uncomment the lines "
        "about\n"
        "# accounting, start slurmdbd, then run accounts.sh.\n"
        "ClusterName=%s\nSlurmctldHost=%s\nSlurmUser=slurm\nAuthType=auth/munge\n"
        "StateSaveLocation=/var/lib/slurm/slurmctld\nSlurmdSpoolDir=/var/lib/slurm/slurmd\n"
        "SlurmctldPidFile=/run/slurmctld.pid\nSlurmdPidFile=/run/slurmd.pid\n"
        "SlurmctldLogFile=/var/log/slurm/slurmctld.log\nSlurmdLogFile=/var/log/slurm/"
        "slurmd.log\n"
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/"
        "affinity\nMpiDefault=none\n"
        "ReturnToService=1\n",
        m->cluster, m->host);
    buf_addf(out, "KillWait=%lld\n", (long long)((config->grace_ms + 999) / 1000));
    buf_addf(out,
             "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
             "# Memory of a job that does not say --mem.\nDefMemPerCPU=%lld\n",
             (long long)per_cpu);
    add_sizes(x, out);
    if (m->types[0])
        buf_addf(out, "GresTypes=gpu%s\n", m->shard_mib ? ",shard" : "");
    buf_addf(
        out,
        "#AccountingStorageType=accounting_storage/slurmdbd\n#AccountingStorageHost=localhost\n"
        "#AccountingStorageTRES=gres/gpu%s\n#AccountingStorageEnforce=associations,limits\n",
        m->shard_mib ? ",gres/shard" : "");
    if (config->fair_share)
        buf_addf(out,
                 "#PriorityType=priority/multifactor\n#PriorityWeightFairshare=1000\n"
                 "#PriorityDecayHalfLife=%lld\n",
                 (long long)(config->fair_half_life_s / 60));
    add_node(x, m, out);
    add_partition(config, out);
}
