/* The jobs that one scancel names. */
#ifndef SLURM_CANCEL_IDS_H
#define SLURM_CANCEL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* A Slurm job. */
struct cancel_id {
    int64_t array; /* its id, or its array's */
    int32_t task;  /* -1: not in an array */
    void *owner;   /* the caller's */
};

/* Reads "24_3" or "31"; does not set owner. False: neither form. */
bool cancel_id_read(const char *text, struct cancel_id *out);

/* Sorts ids and appends at most `most` arguments for scancel, each NUL-terminated. All tasks
 * of an array form one argument, "24_[0-3,7]", which is one call to slurmctld. Returns how
 * many of the ids, in the new order, the arguments cover. */
size_t cancel_ids_add(struct cancel_id *ids, size_t n, int most, struct buf *out);

#endif
