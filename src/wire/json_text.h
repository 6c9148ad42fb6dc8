/* JSON text to values, as json_loadb without flags reads it and several times faster: a message
 * between Berth's processes is mostly plain strings and whole numbers. What else JSON has, and
 * every error, is left to json_loadb. */
#ifndef WIRE_JSON_TEXT_H
#define WIRE_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* The object or array that the n bytes of text are, owned by the caller. NULL with *why filled
 * (NULL is fine) when they are none, or memory is short. */
json_t *json_text_read(const char *text, size_t n, json_error_t *why);

#endif
