/* Sets of CPUs as the kernel writes them, "0-15,32-47". Pure. */
#ifndef BASE_CPU_LIST_H
#define BASE_CPU_LIST_H

#include <sched.h>
#include <stdbool.h>

struct buf;

/* False, and *out empty, if the text is not such a list, is empty, or has CPUs beyond
 * CPU_SETSIZE. */
bool cpu_list_read(const char *text, cpu_set_t *out);

/* Appends the list; nothing for an empty set. */
void cpu_list_add(const cpu_set_t *set, struct buf *out);

#endif
