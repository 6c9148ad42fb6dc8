/* A picture that compares policies by mean wait and by the wait of wide jobs. */
#ifndef SIM_SVG_COMPARE_H
#define SIM_SVG_COMPARE_H

#include <stddef.h>

struct buf;

/* Results of one policy over the workloads of one base, as ratios: at least 0, perhaps
 * infinite. */
struct compared {
    const char *policy; /* borrowed */
    double wait;        /* mean wait, relative to greedy */
    double multi;       /* longest wait of jobs with several GPUs, relative to easy-e */
};

/* One panel per base, all with the same axes, and one point per policy: points[base *
 * n_policies + policy]. At least one of each. Names and title are plain text. */
void svg_compare(const struct compared *points, const char *const *bases, size_t n_bases,
                 size_t n_policies, const char *title, struct buf *out);

#endif
