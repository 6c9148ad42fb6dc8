/* Reads members of the probe's messages and of what is stored of them. */
#ifndef DAEMON_GPU_PROBE_JSON_H
#define DAEMON_GPU_PROBE_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

static inline int64_t
probejson_int(const json_t *v, int64_t other)
{
    return json_is_number(v) ? (int64_t)json_number_value(v) : other;
}

/* Copies a string, truncated to size; "" if it is not a string. */
static inline void
probejson_copy(char *out, size_t size, const json_t *v)
{
    snprintf(out, size, "%s", json_is_string(v) ? json_string_value(v) : "");
}

#endif
