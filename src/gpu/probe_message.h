/* Writes the probe's messages as lines of JSON: docs/protocol.md, section 3. */
#ifndef GPU_PROBE_MESSAGE_H
#define GPU_PROBE_MESSAGE_H

#include <stdint.h>

struct backend_group;
struct backend_machine;
struct backend_sample;
struct buf;
struct kmsg_record;

/* Each function appends one line with its newline. kernel_log: the newest record's number in
 * the kernel's log, -1 if that cannot be read. */
void message_hello(struct buf *out, const char *backend, const struct backend_machine *m,
                   int64_t kernel_log);
void message_error(struct buf *out, const char *words);

/* The user of a process, -1 if unknown. A number, because the name may have to come from a
 * directory server that does not answer, which would stop the samples. */
typedef int64_t (*message_uid_fn)(int32_t pid);

/* Errors of GPUs found in the kernel's log. */
void message_faults(struct buf *out, int64_t kernel_log, const struct kmsg_record *records,
                    int n);

void message_sample(struct buf *out, int64_t number, const struct backend_machine *m,
                    const struct backend_sample *s, const struct backend_group *groups,
                    int n_groups, message_uid_fn uid_of);

#endif
