/* One line of entries, for lines.c: a search tree that also stores the shortest run below each
 * entry. A tree is named by its root's number; 0 is the empty tree. */
#ifndef SIM_TEXTBOOK_TREAP_H
#define SIM_TEXTBOOK_TREAP_H

#include "sim/textbook/lines.h"

/* Return the new root. The order within the tree must not depend on l->now. */
uint32_t treap_insert(const struct lines *l, uint32_t root, uint32_t who);
uint32_t treap_erase(const struct lines *l, uint32_t root, uint32_t who);
uint32_t treap_first(const struct entry *e, uint32_t root);
/* The first entry that comes after `after` (0: any), which need not be in the tree, and runs
 * for at most max_run; 0: none. */
uint32_t treap_next(const struct lines *l, uint32_t root, uint32_t after, int64_t max_run);

/* Compares response ratios at l->now: below 0 if a's is larger. Exact. */
int treap_compare_ratio(const struct lines *l, const struct entry *a, const struct entry *b);
int64_t treap_reckoned_run(const struct entry *e); /* at least a minute */

#endif
