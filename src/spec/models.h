/* What models need: a table of `name: requirement`, for commands that hold --llm NAME. JSON or
 * YAML. A requirement is a number of GPUs (up to 1 a share of one) or a size of VRAM. Pure: the
 * caller reads the file. */
#ifndef SPEC_MODELS_H
#define SPEC_MODELS_H

#include <stddef.h>

struct err;
struct models;
struct request;

/* NULL with ERR_USAGE and "NAME:LINE: ..." when the text is no such table. */
struct models *models_read(const char *name, const char *text, size_t len, struct err *e);
void models_free(struct models *m); /* NULL is fine */

size_t models_count(const struct models *m);

/* Gives a request whose command holds --llm NAME or --llm=NAME what the table says of that
 * model, or its default, unless it says GPUs, VRAM or a share itself, or is a request that has
 * been given it before; llm is set. To be called before request_validate. m NULL: nothing. */
void models_apply(const struct models *m, struct request *r);

#endif
