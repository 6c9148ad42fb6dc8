/* Numbers of jobs in order: for bsearch over uint32_t; sorted, and copied so. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include <stddef.h>
#include <stdint.h>

static inline int
ids_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* For 100,000 ids in a tenth of the time that comparing takes. */
void ids_sort(uint32_t *ids, size_t n);
uint32_t *ids_sorted(const uint32_t *ids, size_t n); /* a copy, for the caller to free */

#endif
