/* What clang's analyzer cannot see, since it looks at one file at a time: these always
 * return -1. Without it each `if (parse_int(..., &n, e) < 0)` looks as if it could go on
 * with n unset. tools/lint puts this in front of every file but err.c itself. */
#include "base/err.h"

#define err_set(...)    (err_set(__VA_ARGS__), -1)
#define err_errno(...)  (err_errno(__VA_ARGS__), -1)
#define err_prefix(...) (err_prefix(__VA_ARGS__), -1)
