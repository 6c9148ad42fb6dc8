/* Numbers of jobs in order: for qsort and bsearch over uint32_t. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include <stdint.h>

static inline int
ids_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

#endif
