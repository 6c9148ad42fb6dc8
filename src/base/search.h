/* Binary search over sorted items by any of their fields; libc's bsearch does not return the
 * insertion point. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

/* The lowest of the numbers 0..N-1 for which BEFORE is false, N if there is none. BEFORE is an
 * expression over AT, a name chosen by the caller: true if item AT precedes the one looked
 * for. It must be true up to some number and false from there on.
 *
 *     size_t place = search_first(at, n_users, users[at].uid < uid); */
#define search_first(AT, N, BEFORE)                                                            \
    ({                                                                                         \
        __typeof__((N) + 0) low_ = 0, high_ = (N);                                             \
        while (low_ < high_) {                                                                 \
            __typeof__((N) + 0) AT = low_ + (high_ - low_) / 2;                                \
            if (BEFORE)                                                                        \
                low_ = AT + 1;                                                                 \
            else                                                                               \
                high_ = AT;                                                                    \
        }                                                                                      \
        low_;                                                                                  \
    })

#endif
