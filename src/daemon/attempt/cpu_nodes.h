/* The machine's NUMA nodes, and the CPUs of each that jobs may use: those that the daemon
 * itself may use, and the process that forks supervisors. */
#ifndef DAEMON_ATTEMPT_CPU_NODES_H
#define DAEMON_ATTEMPT_CPU_NODES_H

#include <jansson.h>
#include <stdint.h>

struct attempts;
struct buf;
struct card;

/* Takes the nodes of the probe's first line: their CPUs are counted in the ledger from now on.
 * A line without nodes says that there are none. */
void cpu_nodes_take(struct attempts *a, const json_t *hello);

/* The CPUs of a set of nodes, as a list: "0-15,32-47". Appended; nothing where none are
 * known. */
void cpu_nodes_add_cpus(const struct attempts *a, uint64_t nodes, struct buf *out);

/* "CPUs 0-15 (NUMA node 0)". Appended. */
void cpu_nodes_add_text(const struct attempts *a, uint64_t nodes, struct buf *out);

/* For one card: the CPUs of its node, and why no job on it alone is bound to them. Appended;
 * nothing where none is known, or jobs are. */
void cpu_nodes_of_card(const struct attempts *a, const struct card *c, struct buf *cpus,
                       struct buf *why);

#endif
