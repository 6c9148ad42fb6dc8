/* The members of a JSON object that somebody else wrote, read into a struct by a table, each
 * checked for its type and range. What has more to it (lists of objects, words out of a set)
 * the caller reads itself. Attributes of jobs have a table of their own: spec/attr.h. */
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
    MEMBER_CHARS,  /* char[]: a string, cut at the border of a character where it is too long */
    MEMBER_LIST,   /* char **: a list of strings, ended by NULL and for the caller to free; the
                      strings are borrowed. Empty where it is missing */
    MEMBER_FLAG,   /* bool: whether it is true */
};

struct member {
    const char *key; /* NULL: the end of the table */
    enum member_kind kind;
    bool needed; /* else it may be missing or null, and the field stays as it was */
    size_t at, size;
    int64_t min, max;
};

/* A row whose key is the field's name, and one whose key is another. */
#define MEMBER_AS(KEY, KIND, STRUCT, FIELD)                                                    \
    .key = (KEY), .kind = MEMBER_##KIND, .at = offsetof(struct STRUCT, FIELD),                 \
    .size = sizeof(((struct STRUCT *)NULL)->FIELD)
#define MEMBER(KIND, STRUCT, FIELD) MEMBER_AS(#FIELD, KIND, STRUCT, FIELD)

/* 0, or -1 with ERR_USAGE: which member has to be what. Lists in *out are not freed. */
int members_read(const json_t *object, const struct member *table, void *out, struct err *e);

#endif
