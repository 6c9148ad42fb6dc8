/* How a job's life is put into words: the lines of `berth run` and `berth show`. Pure: text
 * out of values, no terminal and no clock, so that tests can look at every line. */
#ifndef CLI_TABLE_RENDER_H
#define CLI_TABLE_RENDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/common/term.h"

struct buf;

enum style render_state_style(const char *state);
enum style render_gpu_style(const char *state);     /* of a card */
const char *render_state_static(const char *state); /* the same name, living for ever */
const char *render_state_at(int i); /* all of them, from 0 on; NULL behind the last */
bool render_state_is_final(const char *state);
bool render_state_is_active(const char *state); /* holds cards */

/* "14:02:10" local time. */
void render_clock(struct buf *out, int64_t wall_us);

/* "14:31:44 (in 29m34s)", or "(now)". */
void render_when(struct buf *out, int64_t wall_us);
/* "; expected to start at 14:31:44 (in 29m34s)", of an object that waits and says when. */
void render_expected_start(struct buf *out, const json_t *waiting);
/* "14:31" within half a day of now, else "Nov 23 14:31". */
void render_day_clock(struct buf *out, int64_t wall_us, int64_t now_us);
/* The whole of it, with the local zone: "2026-11-20 18:30:00 CET"; nothing for what is
 * unknown. */
void render_moment(struct buf *out, int64_t wall_us);

/* "gpu 0", "gpu 0,2", "cpu" */
void render_gpus(struct buf *out, const json_t *gpus);

/* Two sizes with the unit said once when it is the same: "17.5 of 18.0 GiB", or with
 * unit_first "18.0 GiB of 24.0". */
void render_pair(struct buf *out, int64_t a_mib, const char *glue, int64_t b_mib,
                 bool unit_first);

/* Berth raised this attempt's demand after an out of memory: the user did not declare it. The
 * daemon may not say what was declared; then any later attempt counts. */
bool render_was_raised(const json_t *event);

/* The word for how it ended: "completed", "failed exit 7", "killed signal 9", "timeout",
 * "cancelled", "out of memory", "infeasible", "lost". *style goes with it. */
void render_ending(struct buf *out, const json_t *event, enum style *style);

/* The word and the details of an event, apart; false: nothing to show for this kind.
 * command is what the job runs, for kinds that show it. */
bool render_event(const json_t *event, const char *command, struct buf *word,
                  struct buf *details, enum style *style);

#endif
