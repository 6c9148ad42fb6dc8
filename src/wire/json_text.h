/* Parses JSON text with the same result as json_loadb without flags, several times faster:
 * messages between Berth's processes are mostly plain strings and whole numbers. Rare
 * constructs and all errors are left to json_loadb. */
#ifndef WIRE_JSON_TEXT_H
#define WIRE_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* Parses n bytes of text, an object or array, which the caller owns. NULL with *why filled
 * (why may be NULL) if invalid, or out of memory. */
json_t *json_text_read(const char *text, size_t n, json_error_t *why);

/* For json_dumps: writes a number as it was received, 8.6 and not 8.5999999999999996. Times
 * with microseconds have 16 digits. */
#define JSON_AS_SENT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(16))

#endif
