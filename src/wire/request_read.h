/* Reads a job from a JSON request, with strict checks, because a client may be any user's
 * script. */
#ifndef WIRE_REQUEST_READ_H
#define WIRE_REQUEST_READ_H

#include <jansson.h>

struct err;
struct models;
struct request;

/* Fills *out (initialised here; the caller frees it, also after an error). extra: names of
 * further members that the caller reads itself, NULL-terminated; any other unknown member is
 * an error. models: for commands with --llm NAME; may be NULL. */
int reqjson_read(const json_t *j, const char *const *extra, const struct models *models,
                 struct request *out, struct err *e);

#endif
