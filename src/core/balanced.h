/* The order `balanced`: short mean waits and bounded waits of wide jobs, from users' estimates
 * alone. A pass of its own beside pass.c's; it shares node, promise and starts with it.
 *
 * Who has waited longest for what he costs the others is first. A narrow job (one card) costs
 * its expected run time, by the root of its part of the card; a wide one also the time in
 * which its cards must be emptied, more the more cards it takes and the more narrow jobs come,
 * and less the longer it has waited. A wide job waits about half a day and nine tenths of the
 * time that the node needed, at worst since it came, to work off all that was queued; then it
 * is first for good (promised), and its reservation is kept. Expected run times are the
 * estimates, corrected by how far ended jobs with like estimates stayed below theirs. */
#ifndef CORE_BALANCED_H
#define CORE_BALANCED_H

#include <stdbool.h>
#include <stdint.h>

struct balanced;
struct pass;

struct balanced *balanced_new(const struct pass *p);
void balanced_free(struct balanced *b); /* NULL is fine */

void balanced_arrive(struct pass *p, uint32_t who);
void balanced_end(struct pass *p, uint32_t who, int64_t started, int64_t now);
void balanced_run(struct pass *p, int64_t now);

/* Whether the job has waited for its limit. The first such job's reservation is never broken
 * when estimates are upper bounds. */
bool balanced_is_promised(const struct balanced *b, uint32_t who);

#endif
