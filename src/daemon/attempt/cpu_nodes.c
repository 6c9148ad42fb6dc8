/* Which CPUs are near which GPUs: see cpu_nodes.h. samples.c passes the probe's nodes in. The
 * ledger decides what a job is bound to, and why not (ledger_nodes.c). */
#include "daemon/attempt/cpu_nodes.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cpu_list.h"
#include "core/ledger/ledger.h"
#include "daemon/attempt/attempts.h"
#include "daemon/common/instance.h"
#include "daemon/nursery/nursery_link.h"
#include "sys/confine.h"

/* False: unknown, so no job is bound. */
static bool
cpus_allowed(const struct attempts *a, cpu_set_t *out)
{
    const char *where_jobs_are = nursery_place(a->nursery)->cpus;
    cpu_set_t inherited;

    if (sched_getaffinity(0, sizeof *out, out) < 0)
        return false;
    if (where_jobs_are && cpu_list_read(where_jobs_are, &inherited))
        CPU_AND(out, out, &inherited);
    return true;
}

static void
take_node(struct attempts *a, const json_t *j, const cpu_set_t *allowed)
{
    const char *cpus = json_string_value(json_object_get(j, "cpus"));
    json_int_t node = json_integer_value(json_object_get(j, "node"));
    cpu_set_t *own = node >= 0 && node < LEDGER_NODES ? &a->node_cpus[node] : NULL;

    if (own && cpus && cpu_list_read(cpus, own))
        CPU_AND(own, own, allowed);
}

void
cpu_nodes_take(struct attempts *a, const json_t *hello)
{
    cpu_set_t allowed;
    size_t i;
    const json_t *j;

    if (!cpus_allowed(a, &allowed))
        CPU_ZERO(&allowed);
    for (int node = 0; node < LEDGER_NODES; node++)
        CPU_ZERO(&a->node_cpus[node]);
    json_array_foreach(json_object_get(hello, "nodes"), i, j) take_node(a, j, &allowed);
    for (int node = 0; node < LEDGER_NODES; node++)
        ledger_set_node(a->inst->ledger, node, CPU_COUNT(&a->node_cpus[node]));
}

void
cpu_nodes_add_cpus(const struct attempts *a, uint64_t nodes, struct buf *out)
{
    cpu_set_t all;

    CPU_ZERO(&all);
    for (; nodes; nodes &= nodes - 1)
        CPU_OR(&all, &all, &a->node_cpus[__builtin_ctzll(nodes)]);
    cpu_list_add(&all, out);
}

void
cpu_nodes_add_text(const struct attempts *a, uint64_t nodes, struct buf *out)
{
    const char *between = nodes & (nodes - 1) ? " (NUMA nodes " : " (NUMA node ";
    auto_buf struct buf cpus = BUF_INIT;

    cpu_nodes_add_cpus(a, nodes, &cpus);
    buf_addf(out, "%s %s", strpbrk(buf_str(&cpus), ",-") ? "CPUs" : "CPU", buf_str(&cpus));
    for (; nodes; nodes &= nodes - 1) {
        buf_addf(out, "%s%d", between, __builtin_ctzll(nodes));
        between = ",";
    }
    buf_addc(out, ')');
}

void
cpu_nodes_of_card(const struct attempts *a, const struct card *c, struct buf *cpus,
                  struct buf *why)
{
    const uint8_t gpu = (uint8_t)c->info.index;
    struct demand any;
    uint64_t nodes;

    demand_init(&any);
    any.cpu_bind = CPU_BIND_NODE;
    enum bind_verdict verdict = ledger_bind(a->inst->ledger, &any, &gpu, 1, &nodes);
    if (ledger_node_cpus(a->inst->ledger, c->info.numa) > 0)
        cpu_list_add(&a->node_cpus[c->info.numa], cpus);
    if (a->inst->config.cpu_bind == CONFIG_BIND_OFF)
        buf_adds(why, "the settings have cpu_bind: off");
    else if (verdict == BIND_UNKNOWN && c->info.numa < 0)
        buf_adds(why, "its NUMA node is not known");
    else if (verdict == BIND_UNKNOWN)
        buf_addf(why, "NUMA node %d has no CPUs that jobs may use", c->info.numa);
    else if (verdict == BIND_EVERYWHERE)
        buf_adds(why, "its NUMA node has all the CPUs");
}
