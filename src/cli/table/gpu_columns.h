/* The columns available in a table of GPUs, by name, and the order of its rows. Called by
 * gpu_table.c, and by gpus_verb.c for --format and --sort. */
#ifndef CLI_TABLE_GPU_COLUMNS_H
#define CLI_TABLE_GPU_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/table/table.h"

struct err;

#define GPU_COLUMNS_MAX 24

struct gpu_columns {
    int at[GPU_COLUMNS_MAX];
    int n;
    bool named; /* chosen by the user: shown even if empty */
};

struct gpu_sort {
    int column;
    bool down; /* largest first */
};

void gpu_columns_default(bool narrow, struct gpu_columns *out);
/* Parses "index,state,used"; -1 for an unknown name, with an error that lists all. */
int gpu_columns_read(const char *list, struct gpu_columns *out, struct err *e);
/* Parses "used", "-used". */
int gpu_sort_read(const char *text, struct gpu_sort *out, struct err *e);
/* Sorts the array of GPUs; unknown values come last. */
void gpu_sort_apply(const struct gpu_sort *sort, json_t *gpus);

const struct column *gpu_column_shape(int column);
/* Draws the next cell of the table; bars: the bar column is drawn as a bar. */
void gpu_column_draw(int column, struct table *t, bool bars, const json_t *gpu);

#endif
