/* Values of attributes that base/parse.h does not parse: fractions, task numbers and
 * dependencies. Each function parses the whole text and sets its result only if all of it is
 * valid; errors are ERR_USAGE and say what is valid. Pure. */
#ifndef SPEC_VALUE_H
#define SPEC_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/request.h"

struct err;

#define TASK_RANGES_MAX 16384 /* separate ranges in one set of tasks */

/* "18G", "8192M": MiB, at most VRAM_MAX_MIB. */
int value_mib(const char *s, int32_t *out, struct err *e);

/* "8.6" as 86, "9" as 90: versions of at most 25.5. */
int value_tenths(const char *s, uint8_t *out, struct err *e);

/* "0.8" or "80%": 1..1000. */
int value_permille(const char *s, int32_t *out, struct err *e);

/* "0-99", "1,3,5-9", "0-20:5", "0-99%8". Duplicates count once. *max is the number after the
 * %, or 0. out is overwritten, and is empty after an error. */
int value_tasks(const char *s, struct task_set *out, int32_t *max, struct err *e);

/* "12,12_3,prep": appends ids, tasks of arrays and names to the n entries at *deps, with this
 * type. At most DEPS_MAX in all. */
int value_deps(const char *s, enum dep_type type, struct dep **deps, int *n, struct err *e);
/* "success", "any", "failed"; as on the wire. */
const char *value_dep_name(enum dep_type type);

/* Converts "pack", "spread" or "first" to enum placing_rule, and back; NULL for the
 * default. */
int value_placing(const char *s, uint8_t *out, struct err *e);
const char *value_placing_name(uint8_t rule);

/* "off", "on" or "0-3,5": the GPUs with MPS, as a mask. */
int value_mps(const char *text, uint64_t *gpus, struct err *e);

/* "0-3=kill 5,7=ignore": sets in out what happens to jobs on these GPUs that use more VRAM
 * than they declared. Other GPUs, or all with "", get ON_EXCEED_DEFAULT. Naming a GPU twice is
 * an error. */
int value_exceed_rules(const char *text, enum on_exceed out[GPU_MAX], struct err *e);

/* Checks text for tables, file names and environments: UTF-8 without control bytes, 1 to max
 * bytes. The error has no subject: "is not UTF-8 text". */
int value_check_text(const char *s, size_t max, struct err *e);

/* "NAME=value", UTF-8, for the environment. ERR_USAGE. */
int value_check_env(const char *s, struct err *e);

/* The name of an image, as podman or apptainer accept it. ERR_USAGE. */
int value_check_image(const char *s, struct err *e);

/* "SOURCE:DESTINATION", "SOURCE:DESTINATION:ro" (or rw): two absolute paths. ERR_USAGE. */
int value_check_mount(const char *s, struct err *e);

#endif
