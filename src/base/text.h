/* Text for display, and comparing text. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Length of the UTF-8 character at s, with n bytes available: 1..4; 0 if invalid (including
 * overlong forms, surrogates and values above U+10FFFF). */
size_t text_utf8_len(const char *s, size_t n);

/* The code point of a character accepted by text_utf8_len. */
uint32_t text_code_point(const char *s, size_t len);

bool text_is_utf8(const char *s, size_t n, size_t *bad_at);

/* True if the character (accepted by text_utf8_len) moves a terminal's cursor or changes the
 * direction of text. */
bool text_is_unsafe(const char *s, size_t len);

/* Appends JSON text made safe for a terminal: equivalent JSON with unsafe characters as
 * \uNNNN. */
void text_add_json(struct buf *out, const char *json, size_t n);
/* Appends \uNNNN for one unsafe character; none lies above U+FFFF. */
void text_add_json_escape(struct buf *out, const char *s, size_t len);

/* Appends s made safe for a terminal: control bytes as \n \t \xNN, invalid UTF-8 as \xNN; at
 * most max_columns wide (0: no bound), truncated with "...". */
void text_add_safe(struct buf *out, const char *s, size_t n, int max_columns);

/* Copies s into a field of size bytes, at least 4, truncated with "..." at a character
 * boundary. */
void text_copy_cut(char *out, size_t size, const char *s);

/* Appends s in single quotes for a POSIX shell. */
void text_add_quoted(struct buf *out, const char *s);

/* Terminal columns of a UTF-8 string (wide characters count 2). */
int text_columns(const char *s);

/* Matches "*" and "?" as a shell does, over the whole string. */
bool text_glob(const char *pattern, const char *s);

/* The candidate (NULL-terminated list) nearest to word by edit distance; NULL if none is close
 * enough to suggest. */
const char *text_nearest(const char *word, const char *const *candidates);

/* True if s begins with one of these (a NULL-terminated list). */
bool text_begins_with(const char *s, const char *const *beginnings);

/* Length of a NULL-terminated list. */
size_t text_list_len(char *const *list);
/* Frees a NULL-terminated list and its texts; NULL is fine. */
void text_list_free(char **list);

/* Writes the first 12 hex digits of the SHA-1 of n bytes, and a NUL, to out (13 bytes). */
void text_sha1_12(const void *bytes, size_t n, char *out);
/* Writes all 40 digits and a NUL (41 bytes). */
void text_sha1(const void *bytes, size_t n, char *out);

#endif
