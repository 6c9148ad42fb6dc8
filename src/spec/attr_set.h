/* Setters for attr.c's table, for attributes whose text sets more than one value of the row's
 * kind. No other file includes this one. Errors omit the attribute's name; attr_assign
 * prefixes it. */
#ifndef SPEC_ATTR_SET_H
#define SPEC_ATTR_SET_H

struct attr;
struct err;
struct request;
struct when_clock;

#define ATTR_SETTERS(X)                                                                        \
    X(vram)                                                                                    \
    X(gpus)                                                                                    \
    X(share)                                                                                   \
    X(gpu_type)                                                                                \
    X(min_vram)                                                                                \
    X(margin)                                                                                  \
    X(placement)                                                                               \
    X(cpus)                                                                                    \
    X(mem)                                                                                     \
    X(time)                                                                                    \
    X(signal)                                                                                  \
    X(priority)                                                                                \
    X(after)                                                                                   \
    X(after_any)                                                                               \
    X(after_failed)                                                                            \
    X(array)                                                                                   \
    X(tag)                                                                                     \
    X(error)                                                                                   \
    X(env)                                                                                     \
    X(container_mount)

#define ATTR_DECLARE(name)                                                                     \
    int attr_set_##name(struct request *r, const char *value, struct err *e);
ATTR_SETTERS(ATTR_DECLARE)
#undef ATTR_DECLARE

/* For rows without a setter: parses value by the row's kind. */
int attr_read_text(const struct attr *a, struct request *r, const char *value, struct err *e);

/* "MIG-1234,0" */
int attr_read_gpu_names(struct request *r, const char *value, struct err *e);

/* Checks the name of an output file, as text. */
int attr_check_file(const char *name, struct err *e);

int attr_set_begin(struct request *r, const char *value, const struct when_clock *clock,
                   struct err *e);

#endif
