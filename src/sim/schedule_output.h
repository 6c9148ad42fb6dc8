/* A schedule as text for other programs, and as a picture. */
#ifndef SIM_SCHEDULE_OUTPUT_H
#define SIM_SCHEDULE_OUTPUT_H

#include "sim/textbook/textbook_sim.h"

struct buf;
struct err;

/* One line for each job that ran, by id: job_id,start,end,g0;g1;... Byte for byte the format
 * of the reference's schedules. Appended. */
void dump_schedule(const struct workload *w, const struct schedule *s, struct buf *out);

/* A picture: a lane for each GPU and a box for each job, as high as its part of the GPU's
 * VRAM; below, the number of waiting jobs. The title is plain text. Fails if there are too
 * many jobs for one picture. */
#define SVG_JOBS_MAX 20000
int svg_schedule(const struct workload *w, const struct machine *m, const struct schedule *s,
                 const char *title, struct buf *out, struct err *e);

#endif
