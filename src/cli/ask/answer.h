/* Reading the daemon's answers: a field that is missing or of another type is simply not
 * known, so a newer or older daemon breaks nothing. */
#ifndef CLI_ASK_ANSWER_H
#define CLI_ASK_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

/* "" when it is no string. Borrowed. */
const char *answer_str(const json_t *object, const char *key);
/* otherwise when it is no number. */
int64_t answer_int(const json_t *object, const char *key, int64_t otherwise);
bool answer_bool(const json_t *object, const char *key);
/* A time object's wall time in microseconds; 0 unknown. */
int64_t answer_time_us(const json_t *object, const char *key);

/* Without this list there is no answer at all: NULL with words. Borrowed. */
json_t *answer_list(const json_t *result, const char *key, struct err *e);

/* "0,2" from [0,2] or from [{"index":0},..]; nothing when empty. */
void answer_add_gpus(struct buf *out, const json_t *gpus);
/* "17.5 GiB", or "gpu 0 17.5, gpu 1 3.0 GiB" for several cards, "n/a" for null. */
void answer_add_peaks(struct buf *out, const json_t *peak_mib);
/* What people call the job: "12", or "12_3" from its array_job and array_task. */
void answer_add_id(struct buf *out, const json_t *job);
/* The same from the holders of parts of a card. */
void answer_add_holder(struct buf *out, const json_t *hold);
/* "_[40-99%8]" from an array's object: its tasks that wait; nothing when none do. */
void answer_add_array(struct buf *out, const json_t *array);
/* "a,b" from ["a","b"]. */
void answer_add_words(struct buf *out, const json_t *words);
/* "a b" from the same. */
void answer_add_options(struct buf *out, const json_t *words);
/* Whether it is one of ["a","b"]. */
bool answer_has_word(const json_t *words, const char *word);
/* "12, 13_4 any" from what a job waits for: success is not said. */
void answer_add_after(struct buf *out, const json_t *after);
/* The largest of a peak object, -1 when it is null or empty. */
int64_t answer_peak(const json_t *peak_mib);

#endif
