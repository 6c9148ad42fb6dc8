/* Facts that clang's analyzer cannot derive, since it sees one file at a time. First: these
 * always return -1; otherwise each `if (parse_int(..., &n, e) < 0)` looks as if it could
 * continue with n unset. tools/lint includes this before every file but err.c itself. */
#include "base/err.h"

#define err_set(...)    (err_set(__VA_ARGS__), -1)
#define err_errno(...)  (err_errno(__VA_ARGS__), -1)
#define err_prefix(...) (err_prefix(__VA_ARGS__), -1)

/* cmocka's failure does not return. */
__attribute__((noreturn)) void _fail(const char *const file, const int line);

/* uthash: an element deleted from a table is no longer reachable through it. The real macro is
 * too complex for the analyzer, which then reports uses of freed memory everywhere after
 * it. */
#include <uthash.h>

void *lint_hash_without(void *table, const void *element);
#undef HASH_DELETE
#define HASH_DELETE(hh, head, element) ((head) = lint_hash_without(head, element))
