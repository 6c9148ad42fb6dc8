/* The progress bar at the bottom of a terminal while a file runs: a single line, redrawn in
 * place and erased at the end. Never drawn to a pipe. */
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
    size_t done_at_begin; /* ended before this run, so not part of the pace */
};

/* The bar without escape sequences, at most columns wide. elapsed_ms: time since the start. */
void progress_format(const struct progress_counts *c, int64_t elapsed_ms, int columns,
                     struct buf *out);

/* progress_draw draws the bar with escape sequences; progress_erase removes it, to print lines
 * above it or at the end. */
void progress_draw(struct progress *p, const struct progress_counts *c, int64_t now_us,
                   struct buf *out);
void progress_erase(struct progress *p, struct buf *out);

#endif
