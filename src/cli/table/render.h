/* Describes a job's life in words: the lines of `berth run` and `berth show`. Pure: it makes
 * text from values, without a terminal or a clock, so that tests can check every line. */
#ifndef CLI_TABLE_RENDER_H
#define CLI_TABLE_RENDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/common/term.h"

struct buf;

enum style render_state_style(const char *state);
enum style render_gpu_style(const char *state);     /* of a GPU */
const char *render_state_static(const char *state); /* the same name in static storage */
const char *render_state_at(int i); /* all states, from 0; NULL after the last */
bool render_state_is_final(const char *state);
bool render_state_is_active(const char *state); /* holds GPUs */

/* "14:02:10" local time. */
void render_clock(struct buf *out, int64_t wall_us);

/* "14:31:44 (in 29m34s)", or "(now)". */
void render_when(struct buf *out, int64_t wall_us);
/* "; expected to start at 14:31:44 (in 29m34s)", if the waiting object contains it. */
void render_expected_start(struct buf *out, const json_t *waiting);
/* "14:31" within half a day of now, else "Nov 23 14:31". */
void render_day_clock(struct buf *out, int64_t wall_us, int64_t now_us);
/* Date, time and local zone: "2026-11-20 18:30:00 CET"; nothing if unknown. */
void render_moment(struct buf *out, int64_t wall_us);

/* "gpu 0", "gpu 0,2", "cpu" */
void render_gpus(struct buf *out, const json_t *gpus);

/* Two sizes, with the unit only once if it is the same: "17.5 of 18.0 GiB", or with unit_first
 * "18.0 GiB of 24.0". */
void render_pair(struct buf *out, int64_t a_mib, const char *glue, int64_t b_mib,
                 bool unit_first);

/* True if Berth raised this attempt's demand after an out of memory, so that the user did not
 * declare it. If the daemon does not report the declared amount, any later attempt counts. */
bool render_was_raised(const json_t *event);

/* How the job ended: "completed", "failed exit 7", "killed signal 9", "timeout", "cancelled",
 * "out of memory", "infeasible", "lost". *style: its style. */
void render_ending(struct buf *out, const json_t *event, enum style *style);

/* The word and the details of an event; false: events of this kind are not shown. command: the
 * job's command, for kinds that show it. */
bool render_event(const json_t *event, const char *command, struct buf *word,
                  struct buf *details, enum style *style);

#endif
