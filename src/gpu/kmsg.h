/* One record of the kernel's log, as read from /dev/kmsg, and what it says about a GPU:
 *
 *   4,1234,5678901234,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has ...
 *
 * In MIG mode the address is followed by " GPU-I:05 GPU-CI:00" or only one of them.
 *
 * The head consists of priority, number, microseconds since boot, and flags; lines that begin
 * with a blank continue the previous record (Documentation/ABI/testing/dev-kmsg of the
 * kernel). Pure. */
#ifndef GPU_KMSG_H
#define GPU_KMSG_H

#include <stddef.h>
#include <stdint.h>

#define KMSG_BUS_MAX  32
#define KMSG_NAME_MAX 32
#define KMSG_TEXT_MAX 160
#define KMSG_FELL_OFF 79 /* used if a GPU fell off the bus without an XID */

enum kmsg_kind {
    KMSG_OTHER,  /* nothing about a GPU */
    KMSG_XID,    /* an error of a GPU */
    KMSG_DRIVER, /* the driver was loaded: every GPU was reset */
};

struct kmsg_record {
    enum kmsg_kind kind;
    int64_t seq;               /* the record's number; starts at boot */
    int32_t code;              /* XID */
    int32_t pid;               /* 0: not named */
    int32_t gi, ci;            /* MIG instance that the message names; -1: none */
    char bus_id[KMSG_BUS_MAX]; /* without the function: "0000:3b:00" */
    char name[KMSG_NAME_MAX];  /* of the process; or "" */
    char text[KMSG_TEXT_MAX];  /* the rest of the message, made printable */
};

/* Parses one line of n bytes, without its newline. 0 with *out, or -1 if it is not the head of
 * a record (a continuation, or malformed). */
int kmsg_parse(const char *line, size_t n, struct kmsg_record *out);

#endif
