/* The jobs that one scancel is to name. */
#ifndef SLURM_CANCEL_IDS_H
#define SLURM_CANCEL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* A job of Slurm's. */
struct cancel_id {
    int64_t array; /* its number, or its array's */
    int32_t task;  /* -1: it is in no array */
    void *owner;   /* the caller's */
};

/* "24_3" or "31", whose owner is left alone. False: it is neither. */
bool cancel_id_read(const char *text, struct cancel_id *out);

/* Sorts them and appends words for scancel, each with its NUL: all tasks of an array are one,
 * "24_[0-3,7]", which is one call to slurmctld. No more than so many words; how many of the
 * ids, in their new order, those name. */
size_t cancel_ids_add(struct cancel_id *ids, size_t n, int most, struct buf *out);

#endif
