/* Who is notified of a job's start and end, and how: part of a request (base/request.h), of
 * which most have none. */
#ifndef BASE_HOOK_LIST_H
#define BASE_HOOK_LIST_H

#include <stdint.h>

/* When mail is sent; Slurm's words (spec/attr_hooks.c). */
#define MAIL_BEGIN       1U
#define MAIL_END         2U
#define MAIL_FAIL        4U
#define MAIL_REQUEUE     8U
#define MAIL_TIME_LIMIT  16U
#define MAIL_ARRAY_TASKS 32U /* of each task of an array, instead of the array as a whole */
#define MAIL_NONE        64U /* said to be never */

/* Its texts, all owned; NULL: none. Copying and freeing follow from this list. */
#define HOOK_TEXTS(X)                                                                          \
    X(on_start) /* shell text; and the next two */                                             \
    X(on_end)                                                                                  \
    X(on_fail)                                                                                 \
    X(webhook)   /* URL */                                                                     \
    X(mail_user) /* "alice,bob@example.org"; NULL: whose job it is */

struct hooks {
#define X(field) char *field;
    HOOK_TEXTS(X)
#undef X
    uint32_t mail_types; /* 0: not said */
};

void hooks_free(struct hooks *h); /* NULL is fine */
struct hooks *hooks_copy(const struct hooks *h);

/* When mail is sent: at the end, where only the address was given. */
uint32_t hooks_mail_types(const struct hooks *h);

#endif
