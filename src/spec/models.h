/* The model table: `name: requirement`, for commands with --llm NAME. JSON or YAML. A
 * requirement is a number of GPUs (below 1: a share of one GPU) or a size of VRAM. Pure: the
 * caller reads the file. */
#ifndef SPEC_MODELS_H
#define SPEC_MODELS_H

#include <stddef.h>

struct err;
struct models;
struct request;

/* NULL with ERR_USAGE and "NAME:LINE: ..." if the text is not such a table. */
struct models *models_read(const char *name, const char *text, size_t len, struct err *e);
void models_free(struct models *m); /* NULL is fine */

size_t models_count(const struct models *m);

/* If the request's command has --llm NAME or --llm=NAME, sets r->llm and the resources that
 * the table gives for that model, or the table's default. No-op if the request sets GPUs, VRAM
 * or a share itself, if models_apply has already set it, or if m is NULL. Call it before
 * request_validate. */
void models_apply(const struct models *m, struct request *r);

#endif
