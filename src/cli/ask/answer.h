/* Reads the daemon's answers. A field that is missing or has another type counts as unknown,
 * so that newer and older daemons work too. */
#ifndef CLI_ASK_ANSWER_H
#define CLI_ASK_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

/* "" if it is not a string. Borrowed. */
const char *answer_str(const json_t *object, const char *key);
/* otherwise if it is not a number. */
int64_t answer_int(const json_t *object, const char *key, int64_t otherwise);
bool answer_bool(const json_t *object, const char *key);
/* The wall time of a time object, in microseconds; 0: unknown. */
int64_t answer_time_us(const json_t *object, const char *key);

/* For a list without which the answer is useless: NULL with an error if it is missing.
 * Borrowed. */
json_t *answer_list(const json_t *result, const char *key, struct err *e);

/* "0,2" from [0,2] or from [{"index":0},..]; nothing if empty. */
void answer_add_gpus(struct buf *out, const json_t *gpus);
/* "17.5 GiB", or "gpu 0 17.5, gpu 1 3.0 GiB" for several GPUs, "n/a" for null. */
void answer_add_peaks(struct buf *out, const json_t *peak_mib);
/* The job's id: "12", or "12_3" from its array_job and array_task. */
void answer_add_id(struct buf *out, const json_t *job);
/* The same for the job of an entry in a GPU's list of holders. */
void answer_add_holder(struct buf *out, const json_t *hold);
/* "_[40-99%8]" from an array's object: its pending tasks; nothing if there are none. */
void answer_add_array(struct buf *out, const json_t *array);
/* "a,b" from ["a","b"]. */
void answer_add_words(struct buf *out, const json_t *words);
/* "a b" from the same. */
void answer_add_options(struct buf *out, const json_t *words);
/* True if word is one of ["a","b"]. */
bool answer_has_word(const json_t *words, const char *word);
/* "12, 13_4 any" from a job's dependencies; the type is omitted for success. */
void answer_add_after(struct buf *out, const json_t *after);
/* The largest value of a peak object; -1 if it is null or empty. */
int64_t answer_peak(const json_t *peak_mib);

#endif
