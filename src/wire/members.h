/* Reads members of an untrusted JSON object into a struct by a table, with checks of type and
 * range. The caller reads members of other types (lists of objects, enumerated words). Job
 * attributes have their own table: spec/attr.h. */
#ifndef WIRE_MEMBERS_H
#define WIRE_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum member_kind {
    MEMBER_NUMBER, /* an integer of 16, 32 or 64 bits: a whole number in min..max */
    MEMBER_TEXT,   /* const char *: a string, borrowed from the object */
    MEMBER_CHARS,  /* char[]: a string, truncated at a character boundary if too long */
    MEMBER_LIST,   /* char **: a NULL-terminated list of strings; the caller frees the list,
                      the strings are borrowed. Empty if missing */
    MEMBER_FLAG,   /* bool: whether it is true */
};

struct member {
    const char *key; /* NULL: the end of the table */
    enum member_kind kind;
    bool needed; /* else it may be missing or null, and the field is left unchanged */
    size_t at, size;
    int64_t min, max;
};

/* A row whose key differs from the field's name, and one whose key is the same. */
#define MEMBER_AS(KEY, KIND, STRUCT, FIELD)                                                    \
    .key = (KEY), .kind = MEMBER_##KIND, .at = offsetof(struct STRUCT, FIELD),                 \
    .size = sizeof(((struct STRUCT *)NULL)->FIELD)
#define MEMBER(KIND, STRUCT, FIELD) MEMBER_AS(#FIELD, KIND, STRUCT, FIELD)

/* 0, or -1 with ERR_USAGE, which says what the member must be. Does not free lists in *out. */
int members_read(const json_t *object, const struct member *table, void *out, struct err *e);

#endif
