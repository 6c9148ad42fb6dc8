/* Radix sort of ids, one byte at a time from the lowest: see ids.h. */
#include "base/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Stable sort by one byte, from `from` into `to`. */
static void
sort_by_byte(const uint32_t *from, uint32_t *to, size_t n, int shift)
{
    size_t begin[257] = {0};
    for (size_t i = 0; i < n; i++)
        begin[(from[i] >> shift & 255) + 1]++;
    for (int b = 0; b < 256; b++)
        begin[b + 1] += begin[b];
    for (size_t i = 0; i < n; i++)
        to[begin[from[i] >> shift & 255]++] = from[i];
}

void
ids_sort(uint32_t *ids, size_t n)
{
    uint32_t *other = xcalloc(n + 1, sizeof *other);
    for (int shift = 0; shift < 32; shift += 16) {
        sort_by_byte(ids, other, n, shift);
        sort_by_byte(other, ids, n, shift + 8);
    }
    free(other);
}

uint32_t *
ids_sorted(const uint32_t *ids, size_t n)
{
    uint32_t *copy = xcalloc(n + 1, sizeof *copy);
    if (n > 0)
        memcpy(copy, ids, n * sizeof *copy);
    ids_sort(copy, n);
    return copy;
}
