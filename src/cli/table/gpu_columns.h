/* The columns that a table of cards can have, by name, and the order of its rows. Called by
 * gpu_table.c, and by gpus_verb.c for what --format and --sort ask for. */
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
    bool named; /* by the user: shown in any case */
};

struct gpu_sort {
    int column;
    bool down; /* the largest first */
};

void gpu_columns_default(bool narrow, struct gpu_columns *out);
/* "index,state,used"; -1: a name that is none, and said which there are. */
int gpu_columns_read(const char *list, struct gpu_columns *out, struct err *e);
/* "used", "-used" */
int gpu_sort_read(const char *text, struct gpu_sort *out, struct err *e);
/* Puts the array of cards into that order; what is not known comes last. */
void gpu_sort_apply(const struct gpu_sort *sort, json_t *gpus);

const struct column *gpu_column_shape(int column);
/* The next cell of the table; bars: with a bar where that is its column. */
void gpu_column_draw(int column, struct table *t, bool bars, const json_t *gpu);

#endif
