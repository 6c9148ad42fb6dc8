/* Text that people see, and text that is compared. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Bytes of the UTF-8 character at s, of which n are there: 1..4; 0 when it is none
 * (overlong forms, surrogates and what lies above U+10FFFF are none). */
size_t text_utf8_len(const char *s, size_t n);

/* The code point of a character that text_utf8_len has approved. */
uint32_t text_code_point(const char *s, size_t len);

bool text_is_utf8(const char *s, size_t n, size_t *bad_at);

/* Whether the character (that text_utf8_len has approved) moves a terminal's cursor, or makes
 * text read otherwise than it runs. */
bool text_is_unsafe(const char *s, size_t len);

/* Appends JSON text made safe for a terminal: the same JSON, with such characters as \uNNNN. */
void text_add_json(struct buf *out, const char *json, size_t n);
/* The same for one such character; what is above U+FFFF is none. */
void text_add_json_escape(struct buf *out, const char *s, size_t len);

/* Appends s made safe for a terminal: control bytes as \n \t \xNN, bytes that are not
 * UTF-8 as \xNN; at most max_columns wide (0: no bound), cut with "..." . */
void text_add_safe(struct buf *out, const char *s, size_t n, int max_columns);

/* Copies s into a field of size bytes, at least 4. What does not fit is cut between two
 * characters, and "..." stands for it. */
void text_copy_cut(char *out, size_t size, const char *s);

/* Appends s within single quotes, as a POSIX shell reads it back. */
void text_add_quoted(struct buf *out, const char *s);

/* Terminal columns that a UTF-8 string takes (wide characters count 2). */
int text_columns(const char *s);

/* "*" and "?" as in a shell, over the whole string. */
bool text_glob(const char *pattern, const char *s);

/* The candidate (NULL-terminated list) nearest to word by edit distance, NULL when none is
 * near enough to suggest. */
const char *text_nearest(const char *word, const char *const *candidates);

/* Whether it begins with one of these (a NULL-terminated list). */
bool text_begins_with(const char *s, const char *const *beginnings);

/* How many texts a NULL-terminated list has. */
size_t text_list_len(char *const *list);
/* Frees a NULL-terminated list and its texts; NULL is fine. */
void text_list_free(char **list);

/* First 12 hex digits of the SHA-1 of n bytes, and a NUL, into out (13 bytes). */
void text_sha1_12(const void *bytes, size_t n, char *out);
/* All 40 digits and a NUL (41 bytes). */
void text_sha1(const void *bytes, size_t n, char *out);

#endif
