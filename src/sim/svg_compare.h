/* Policies side by side as a picture: what each costs in mean wait and in the wait of wide
 * jobs. */
#ifndef SIM_SVG_COMPARE_H
#define SIM_SVG_COMPARE_H

#include <stddef.h>

struct buf;

/* One policy over the workloads of one base. Ratios, at least 0; may be infinite. */
struct compared {
    const char *policy; /* borrowed */
    double wait;        /* mean wait, of greedy's */
    double multi;       /* longest wait of a job with several GPUs, of easy-e's */
};

/* A panel for each base, all on the same axes, with a point for each policy: points[base *
 * n_policies + policy]. There is at least one of each. Names and title are plain text. */
void svg_compare(const struct compared *points, const char *const *bases, size_t n_bases,
                 size_t n_policies, const char *title, struct buf *out);

#endif
