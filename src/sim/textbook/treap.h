/* One line of entries, as lines.c keeps it: a search tree that also knows the shortest run
 * below each entry. A tree is named by its root's number, 0 when it is empty. */
#ifndef SIM_TEXTBOOK_TREAP_H
#define SIM_TEXTBOOK_TREAP_H

#include "sim/textbook/lines.h"

/* The new root. The order within the tree must not depend on l->now. */
uint32_t treap_insert(const struct lines *l, uint32_t root, uint32_t who);
uint32_t treap_erase(const struct lines *l, uint32_t root, uint32_t who);
uint32_t treap_first(const struct entry *e, uint32_t root);
/* The first that comes after that entry (0: any), itself in the tree or not, and runs for
 * max_run at most; 0: none. */
uint32_t treap_next(const struct lines *l, uint32_t root, uint32_t after, int64_t max_run);

/* Response ratios at l->now: below 0 when a's is larger. Exact. */
int treap_compare_ratio(const struct lines *l, const struct entry *a, const struct entry *b);
int64_t treap_reckoned_run(const struct entry *e); /* a minute at least */

#endif
