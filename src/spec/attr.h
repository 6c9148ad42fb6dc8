/* The attributes of a job: one table of names, help and setters, from which the jobs file
 * reads its [key=value ... word] and the command line makes its options. Adding an
 * attribute is adding a row in attr.c. Pure. */
#ifndef SPEC_ATTR_H
#define SPEC_ATTR_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct request;
struct when_clock;

/* Where the words come from. An attribute has one meaning at every door; a row that is closed
 * at one of them says why. The socket has them all, by the names of docs/protocol.md. */
enum attr_door {
    ATTR_JOBS_FILE = 1,
    ATTR_COMMAND_LINE = 2, /* options of `berth submit`, and #BERTH lines */
};

#define ATTR_ALIASES_MAX  3
#define NAME_MAX_BYTES    128
#define LOG_MAX_BYTES     4096
#define TAG_MAX_BYTES     64
#define COMMENT_MAX_BYTES 1024
#define SETUP_MAX_BYTES   32768
#define CONDA_MAX_BYTES   1024
#define CPUS_MAX          65536
#define REQUEUES_MAX      100
#define GRACE_MAX_MS      (24LL * 3600 * 1000)
#define TTY_SIZE_MAX      65535
#define LIMIT_MAX_MS      (36500LL * 24 * 3600 * 1000) /* as parse_duration_ms has it */

struct attr {
    const char *name;                      /* "gpu-ids"; in text `_` does as well as `-` */
    const char *aliases[ATTR_ALIASES_MAX]; /* NULL: no more */
    char letter;                           /* short option, 'G'; '\0': none */
    unsigned doors; /* of enum attr_door; 0: no attribute, name is the title of those behind */
    const char *metavar; /* "SIZE"; NULL: a bare word such as `hold` */
    const char *closed;  /* why a door is closed to it, and what would do; NULL: none is */
    const char *help;    /* one line, no full stop */
    int (*set)(struct request *r, const char *value, struct err *e); /* value: never NULL */
    /* Those that must know what time it is have this in the place of set. */
    int (*set_at)(struct request *r, const char *value, const struct when_clock *clock,
                  struct err *e);
};

/* Row i of the table, in the order in which help shows them; NULL behind the last. */
const struct attr *attr_at(size_t i);

/* By name or alias, in any case; NULL when none of these doors (enum attr_door) has it. */
const struct attr *attr_find(const char *name, unsigned doors);

/* As request_init, but remembers that `gpus` has not been said, so that request_validate
 * can tell a contradiction from a default. Every door that uses attr_assign starts here and
 * ends with request_validate. */
void request_begin(struct request *r);

/* Sets one attribute from text. value NULL: the bare word (`hold`); a bare word also takes
 * yes or no (`hold=no`). The last of several wins. Errors (ERR_USAGE) name the attribute,
 * the value and what would be right; an unknown name suggests the nearest. */
int attr_assign(struct request *r, const char *name, const char *value, enum attr_door door,
                struct err *e);
/* The same where there is a clock, which moments such as 16:00 need (spec/when.h). */
int attr_set_at(struct request *r, const char *name, const char *value, enum attr_door door,
                const struct when_clock *clock, struct err *e);

/* What no single attribute can know: contradictions between them, and - for requests that
 * came over the wire - every range again. Completes gpus (from gpu-ids, else 1). A command
 * or argv must be there. ERR_USAGE. */
int request_validate(struct request *r, struct err *e);

/* 0 when a job can be warned by it: not by KILL and STOP, which cannot be caught. */
int attr_check_signal(int signal, struct err *e);

#endif
