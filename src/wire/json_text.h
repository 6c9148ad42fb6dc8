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

/* For json_dumps: a number that was read is written as it was sent, 8.6 and not
 * 8.5999999999999996. Times, with microseconds, have 16 digits. */
#define JSON_AS_SENT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(16))

#endif
