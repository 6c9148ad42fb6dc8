/* A schedule for other programs and for eyes. */
#ifndef SIM_SCHEDULE_OUTPUT_H
#define SIM_SCHEDULE_OUTPUT_H

#include "sim/textbook/textbook_sim.h"

struct buf;
struct err;

/* One line for each job that ran, by id: job_id,start,end,g0;g1;... The form of the reference's
 * schedules, to the byte. Appended. */
void dump_schedule(const struct workload *w, const struct schedule *s, struct buf *out);

/* A picture: a lane for each GPU, a box for each job, as high as its share of the GPU's VRAM;
 * below, how many wait. The title is plain text. An error when there are too many jobs for
 * one picture. */
#define SVG_JOBS_MAX 20000
int svg_schedule(const struct workload *w, const struct machine *m, const struct schedule *s,
                 const char *title, struct buf *out, struct err *e);

#endif
