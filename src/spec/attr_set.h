/* The setters of attr.c's table, for text that says more than one value of its row's kind. No
 * other file includes it. Errors lack the attribute's name; attr_assign puts it in front. */
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

/* Where the row names none: as its kind has it. */
int attr_read_text(const struct attr *a, struct request *r, const char *value, struct err *e);

/* "MIG-1234,0" */
int attr_read_gpu_names(struct request *r, const char *value, struct err *e);

/* Of a file for output, as text. */
int attr_check_file(const char *name, struct err *e);

int attr_set_begin(struct request *r, const char *value, const struct when_clock *clock,
                   struct err *e);

#endif
