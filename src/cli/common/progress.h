/* The bar at the bottom of a terminal while a file runs: one line, drawn over itself, gone
 * at the end. Never on a pipe. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct progress {
    bool on;
    bool drawn;
    int columns;
    int64_t begun_us; /* boot clock */
};

struct progress_counts {
    size_t total, done, running, waiting, failed;
    size_t done_at_begin; /* had ended before: no measure of speed */
};

/* The bar without escapes, at most columns wide. elapsed_ms is since it began. */
void progress_format(const struct progress_counts *c, int64_t elapsed_ms, int columns,
                     struct buf *out);

/* Escapes and bar; erase takes it away (for lines to be printed above, or at the end). */
void progress_draw(struct progress *p, const struct progress_counts *c, int64_t now_us,
                   struct buf *out);
void progress_erase(struct progress *p, struct buf *out);

#endif
