/* NUMA nodes: how many CPUs each has, how many cores bound jobs hold there, and to which nodes
 * a job is bound. place_set.c asks which cards have free cores near them, starts.c what an
 * attempt gets. Cores are counted per node, not assigned individually: jobs on a node share
 * its CPUs, each with the CPU time that it booked, and the kernel spreads them over the
 * physical cores.
 *
 * A job is never bound where the cores it booked are not free, unless it insists: it would be
 * slower than unbound. */
#include "core/ledger/ledger_priv.h"

static bool
is_counted(int node)
{
    return node >= 0 && node < LEDGER_NODES;
}

void
ledger_set_node(struct ledger *l, int node, int32_t cpus)
{
    if (!is_counted(node) || l->node_cpus[node] == cpus)
        return;
    l->node_cpus[node] = cpus;
    l->generation++;
}

void
ledger_set_bind(struct ledger *l, enum cpu_bind mode)
{
    if (l->bind_mode != mode)
        l->generation++;
    l->bind_mode = mode;
}

int32_t
ledger_node_cpus(const struct ledger *l, int node)
{
    return is_counted(node) ? l->node_cpus[node] : 0;
}

int64_t
ledger_node_held(const struct ledger *l, int node)
{
    return is_counted(node) ? l->node_held[node] : 0;
}

enum cpu_bind
ledger_bind_mode(const struct ledger *l, const struct demand *d)
{
    enum cpu_bind mode = d->cpu_bind ? (enum cpu_bind)d->cpu_bind : l->bind_mode;
    if (demand_n_gpus(d) == 0 || d->engine == ENGINE_SLURM ||
        (mode == CPU_BIND_AUTO && d->cpus == 0))
        return CPU_BIND_OFF;
    return mode;
}

/* A job's cores on each of its nodes. */
static int32_t
part_of(int32_t cpus, uint64_t nodes)
{
    int n = __builtin_popcountll(nodes);
    return n > 0 ? (cpus + n - 1) / n : 0;
}

/* Whether the booked cores are free there, in equal parts on each node. */
static bool
nodes_have(const struct ledger *l, const struct demand *d, uint64_t nodes)
{
    int32_t part = part_of(d->cpus, nodes);
    for (; nodes; nodes &= nodes - 1) {
        int node = __builtin_ctzll(nodes);
        if (l->node_cpus[node] - l->node_held[node] < part)
            return false;
    }
    return true;
}

/* The nodes of these cards; 0 if one is unknown or has no CPUs. */
static uint64_t
nodes_of(const struct ledger *l, const uint8_t *gpus, int n)
{
    uint64_t nodes = 0;
    for (int i = 0; i < n; i++) {
        int node = ledger_card(l, gpus[i])->info.numa;
        if (ledger_node_cpus(l, node) == 0)
            return 0;
        nodes |= UINT64_C(1) << node;
    }
    return nodes;
}

static bool
has_others(const struct ledger *l, uint64_t nodes)
{
    for (int node = 0; node < LEDGER_NODES; node++)
        if (l->node_cpus[node] > 0 && !(nodes >> node & 1))
            return true;
    return false;
}

enum bind_verdict
ledger_bind(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n,
            uint64_t *nodes)
{
    enum cpu_bind mode = ledger_bind_mode(l, d);
    *nodes = 0;
    if (mode == CPU_BIND_OFF)
        return BIND_NOT_WANTED;
    uint64_t near = nodes_of(l, gpus, n);
    if (!near)
        return BIND_UNKNOWN;
    if (!has_others(l, near))
        return BIND_EVERYWHERE;
    if (mode == CPU_BIND_AUTO && !nodes_have(l, d, near))
        return BIND_FULL;
    *nodes = near;
    return BIND_NEAR;
}

void
nodes_hold(struct ledger *l, struct holding *h, uint64_t nodes)
{
    h->nodes = nodes;
    for (uint64_t rest = nodes; rest; rest &= rest - 1)
        l->node_held[__builtin_ctzll(rest)] += part_of(h->cpus, nodes);
}

void
nodes_release(struct ledger *l, struct holding *h)
{
    for (uint64_t rest = h->nodes; rest; rest &= rest - 1)
        l->node_held[__builtin_ctzll(rest)] -= part_of(h->cpus, h->nodes);
    h->nodes = 0;
}

bool
nodes_agree(const struct ledger *l)
{
    int64_t held[LEDGER_NODES] = {0};
    bool agree = true;
    for (size_t b = 0; b < l->n_buckets; b++)
        for (const struct holding *h = l->buckets[b]; h; h = h->next)
            for (uint64_t rest = h->nodes; rest; rest &= rest - 1)
                held[__builtin_ctzll(rest)] += part_of(h->cpus, h->nodes);
    for (int node = 0; node < LEDGER_NODES; node++)
        agree = agree && held[node] == l->node_held[node];
    return agree;
}
