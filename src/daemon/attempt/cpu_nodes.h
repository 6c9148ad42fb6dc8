/* The machine's NUMA nodes and the CPUs of each that jobs may use: those allowed to both the
 * daemon and the process that forks supervisors. */
#ifndef DAEMON_ATTEMPT_CPU_NODES_H
#define DAEMON_ATTEMPT_CPU_NODES_H

#include <jansson.h>
#include <stdint.h>

struct attempts;
struct buf;
struct card;

/* Takes the nodes from the probe's first line and sets their CPU counts in the ledger. A line
 * without nodes means that there are none. */
void cpu_nodes_take(struct attempts *a, const json_t *hello);

/* Appends the CPUs of a set of nodes as a list, "0-15,32-47"; nothing if unknown. */
void cpu_nodes_add_cpus(const struct attempts *a, uint64_t nodes, struct buf *out);

/* Appends "CPUs 0-15 (NUMA node 0)". */
void cpu_nodes_add_text(const struct attempts *a, uint64_t nodes, struct buf *out);

/* For one GPU: appends the CPUs of its node, and the reason why a job on this GPU alone is not
 * bound to them. Each is left empty if unknown, or if jobs are bound. */
void cpu_nodes_of_card(const struct attempts *a, const struct card *c, struct buf *cpus,
                       struct buf *why);

#endif
