/* A request in words, as it was understood. Pure. */
#ifndef SPEC_DESCRIBE_H
#define SPEC_DESCRIBE_H

struct buf;
struct request;

/* One "name  value" line for each thing that it asks for, names as those of attributes; ends
 * with a newline. The command is the first. */
void request_describe(const struct request *r, struct buf *out);

#endif
