/* One record of the kernel's log, as /dev/kmsg hands it out, and what it says about a GPU:
 *
 *   4,1234,5678901234,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has ...
 *
 * In MIG mode the address is followed by " GPU-I:05 GPU-CI:00" or the first of them.
 *
 * The head is priority, number, microseconds since boot, flags; lines that begin with a blank
 * belong to the record before (Documentation/ABI/testing/dev-kmsg of the kernel). Pure. */
#ifndef GPU_KMSG_H
#define GPU_KMSG_H

#include <stddef.h>
#include <stdint.h>

#define KMSG_BUS_MAX  32
#define KMSG_NAME_MAX 32
#define KMSG_TEXT_MAX 160
#define KMSG_FELL_OFF 79 /* what a card that fell off the bus is called without a number */

enum kmsg_kind {
    KMSG_OTHER,  /* nothing about a GPU */
    KMSG_XID,    /* a card's error */
    KMSG_DRIVER, /* the driver has been loaded: every card was reset */
};

struct kmsg_record {
    enum kmsg_kind kind;
    int64_t seq;               /* the record's number; counts from boot */
    int32_t code;              /* of an XID */
    int32_t pid;               /* 0: the message names none */
    int32_t gi, ci;            /* MIG instances that it names; -1: it names none */
    char bus_id[KMSG_BUS_MAX]; /* as cards have it, without the function: "0000:3b:00" */
    char name[KMSG_NAME_MAX];  /* of the process; "" */
    char text[KMSG_TEXT_MAX];  /* what follows, printable */
};

/* Reads one line of n bytes, without its newline. 0 with *out, or -1 when it is no head of a
 * record (a continuation, or nonsense). */
int kmsg_parse(const char *line, size_t n, struct kmsg_record *out);

#endif
