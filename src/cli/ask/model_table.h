/* The user's own model table: --models FILE. */
#ifndef CLI_ASK_MODEL_TABLE_H
#define CLI_ASK_MODEL_TABLE_H

struct err;
struct models;

/* The caller frees the result with models_free; NULL with ERR_USAGE. */
struct models *modeltable_read(const char *path, struct err *e);

#endif
