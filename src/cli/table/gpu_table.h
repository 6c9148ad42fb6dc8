/* The cards as a table: for `berth gpus`, `status` and bare `berth`. */
#ifndef CLI_TABLE_GPU_TABLE_H
#define CLI_TABLE_GPU_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct gpu_columns;
struct term;

/* result: the answer of the `gpus` method (or status: an object with "gpus"). Appends the
 * table, a line for each card that takes no work and why, and, with strangers, a line for
 * each foreign process. */
void gpu_table_add(const json_t *result, const struct term *term, bool strangers,
                   struct buf *out);

/* The table alone, of these columns. Appends. */
void gpu_table_add_columns(const json_t *result, const struct gpu_columns *columns,
                           const struct term *term, struct buf *out);

/* A line for each job that uses a tenth more of the card than it asked for. Appends. */
void gpu_table_add_excess(const json_t *gpu, struct buf *out);

/* Only those lines about cards that take no work; nothing when all do. */
void gpu_table_add_states(const json_t *result, struct buf *out);

/* Of one: "gpu 1: sick for 3h05m: XID 79: the GPU has fallen off the bus; reboot the machine",
 * and a second line when there is something else to know. Appends. */
void gpu_table_add_state(const json_t *gpu, struct buf *out);

/* Where they do not answer: since when, and why. One line without its end, or nothing. */
void gpu_table_add_unknown(const json_t *result, struct buf *out);

/* Where there are none: "no GPUs", and why they cannot be read. Appends. */
void gpu_table_add_none(const json_t *result, struct buf *out);

/* Names the first of the GPUs that were asked for, a bit each, that does not exist. */
void gpu_table_say_missing(const json_t *gpus, uint64_t asked);

/* "2 GPUs (NVIDIA RTX 4090, 24.0 GiB)", "no GPUs". Appends. */
void gpu_table_add_summary(const json_t *gpus, struct buf *out);

#endif
