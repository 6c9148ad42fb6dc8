/* What clang's analyzer cannot see, since it looks at one file at a time. First: these always
 * return -1. Without it each `if (parse_int(..., &n, e) < 0)` looks as if it could go on
 * with n unset. tools/lint puts this in front of every file but err.c itself. */
#include "base/err.h"

#define err_set(...)    (err_set(__VA_ARGS__), -1)
#define err_errno(...)  (err_errno(__VA_ARGS__), -1)
#define err_prefix(...) (err_prefix(__VA_ARGS__), -1)

/* cmocka's failure does not return. */
__attribute__((noreturn)) void _fail(const char *const file, const int line);

/* uthash: what was deleted from a table is no longer reached through it. The real macro is
 * too much for the analyzer, which then sees uses of freed memory everywhere behind. */
#include <uthash.h>

void *lint_hash_without(void *table, const void *element);
#undef HASH_DELETE
#define HASH_DELETE(hh, head, element) ((head) = lint_hash_without(head, element))
