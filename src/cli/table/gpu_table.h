/* The table of GPUs: for `berth gpus`, `status` and bare `berth`. */
#ifndef CLI_TABLE_GPU_TABLE_H
#define CLI_TABLE_GPU_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct gpu_columns;
struct term;

/* result: the answer of the `gpus` method (or status: an object with "gpus"). Appends the
 * table, a line with the reason for each GPU that accepts no work and, with strangers, a line
 * for each foreign process. */
void gpu_table_add(const json_t *result, const struct term *term, bool strangers,
                   struct buf *out);

/* Appends only the table, with these columns. */
void gpu_table_add_columns(const json_t *result, const struct gpu_columns *columns,
                           const struct term *term, struct buf *out);

/* Appends a line for each job that uses a tenth more of the GPU than it requested. */
void gpu_table_add_excess(const json_t *gpu, struct buf *out);

/* Appends only the lines about GPUs that accept no work; nothing if all do. */
void gpu_table_add_states(const json_t *result, struct buf *out);

/* Appends the line of one GPU: "gpu 1: sick for 3h05m: XID 79: the GPU has fallen off the bus;
 * reboot the machine", and a second line if there is more to say. */
void gpu_table_add_state(const json_t *gpu, struct buf *out);

/* If the GPUs do not respond, appends since when and why, as one line without a newline;
 * otherwise nothing. */
void gpu_table_add_unknown(const json_t *result, struct buf *out);

/* If there are no GPUs, appends "no GPUs" and why they cannot be read. */
void gpu_table_add_none(const json_t *result, struct buf *out);

/* Prints a warning about the first GPU in the mask asked that does not exist. */
void gpu_table_say_missing(const json_t *gpus, uint64_t asked);

/* Appends "2 GPUs (NVIDIA RTX 4090, 24.0 GiB)" or "no GPUs". */
void gpu_table_add_summary(const json_t *gpus, struct buf *out);

#endif
