/* The attributes of a job: one table, from which everything follows that treats them alike.
 * Adding an attribute is adding a row in attr.c. Pure. */
#ifndef SPEC_ATTR_H
#define SPEC_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"

struct buf;
struct err;
struct jsonw;
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
#define IMAGE_MAX_BYTES   1024
#define MOUNTS_MAX        32
#define MOUNT_MAX_BYTES   8192
#define CPUS_MAX          65536
#define REQUEUES_MAX      100
#define GRACE_MAX_MS      (24LL * 3600 * 1000)
#define TTY_SIZE_MAX      65535
#define BEGIN_MAX_US      253402300800000000LL         /* the year 10000 */
#define LIMIT_MAX_MS      (36500LL * 24 * 3600 * 1000) /* as parse_duration_ms has it */

/* What a field holds, and in which unit: how it is read from text, sent, kept and shown. */
enum attr_kind {
    ATTR_NOTHING,  /* a title, or a name for what another row holds */
    ATTR_FLAG,     /* bool, or a uint8_t that is 0 or 1 */
    ATTR_INT,      /* int32_t */
    ATTR_MIB,      /* int32_t */
    ATTR_PERMILLE, /* int32_t, thousandths */
    ATTR_TENTHS,   /* uint8_t, a version such as 8.6 */
    ATTR_MS,       /* int64_t */
    ATTR_US,       /* int64_t, a moment on the wall clock */
    ATTR_CHOICE,   /* one of words, by its place there; an enum or a byte (size) */
    ATTR_TEXT,     /* char *, owned; NULL: not said */
    ATTR_LIST,     /* char **, owned, NULL-terminated; NULL: not said */
    ATTR_HOOK,     /* the same as ATTR_TEXT, in struct hooks */
    ATTR_MAIL,     /* struct hooks' mail_types */
    ATTR_CARDS,    /* uint64_t, a set of indices */
    ATTR_IDS,      /* struct demand's ids and n_ids */
    ATTR_TYPE,     /* struct demand's gpu_type */
    ATTR_TASKS,    /* struct task_set */
    ATTR_DEPS,     /* struct request's deps */
};

/* The users who see it in a job's object, where the settings hide jobs from others. */
enum attr_sight {
    ATTR_ALL_SEE,
    ATTR_PRIVATE, /* not others, where jobs are hidden */
    ATTR_CUT,     /* nor then, and else others see the beginning of it */
    ATTR_MINE,    /* only the job's user and admins, ever */
};

/* One row: a field of struct request with all that is known of it, and the name that people
 * have for it. A field without a name belongs to the named row in front of it. Everything that
 * handles all attributes goes through these rows: options, scripts and jobs files, the wire
 * both ways, the store both ways, comparing, a job's object, what `submit --dry-run` says. */
struct attr {
    const char *name;                      /* "gpu-ids"; in text `_` does as well as `-` */
    const char *aliases[ATTR_ALIASES_MAX]; /* NULL: no more */
    char letter;                           /* short option, 'G'; '\0': none */
    unsigned doors; /* of enum attr_door; 0: a title of those behind, or a field without name */
    const char *metavar; /* "SIZE"; NULL: a bare word such as `hold` */
    const char *closed;  /* why a door is closed to it, and what would do; NULL: none is */
    const char *help;    /* one line, no full stop */
    /* Text into the field; NULL: as the kind has it, within the range. value: never NULL */
    int (*set)(struct request *r, const char *value, struct err *e);
    /* Those that must know what time it is have this in the place of set. */
    int (*set_at)(struct request *r, const char *value, const struct when_clock *clock,
                  struct err *e);

    enum attr_kind kind;
    size_t at;   /* of the field in struct request; for hooks in struct hooks */
    size_t size; /* of the field */
    int64_t min,
        max; /* of numbers; for lists how many texts. What was not said may lie outside */
    const char *const
        *words;   /* of a choice; NULL behind the last. The first may be NULL: unsaid */
    size_t bytes; /* the most of a text, plain and not empty; 0: any text */
    int (*check)(const char *text, struct err *e); /* of a text, more than that; NULL */

    const char *want; /* of a list, behind "must be" */

    const char *key;    /* on the wire; NULL: this row has no field */
    const char *column; /* of the store's jobs; NULL: key */
    const char *json;   /* in a job's object; NULL: key */
    enum attr_sight sight;
    bool unshown; /* is not in a job's object */
    bool always;  /* is a number there also where it was not said */
    bool apart;   /* has a line of its own at the end of `show` and of what --dry-run says */
    bool settled; /* no line of a jobs file can change it, or what does is compared apart */
    /* Whether it goes over the wire; NULL: when it is not what request_init makes it. */
    bool (*is_said)(const struct request *r);
};

/* Where the field is. Hooks need r->hooks. */
static inline void *
attr_field(const struct attr *a, const struct request *r)
{
    bool is_hook = a->kind == ATTR_HOOK || a->kind == ATTR_MAIL;

    return (is_hook ? (char *)r->hooks : (char *)r) + a->at;
}

/* The same; makes hooks where there are none. */
void *attr_field_to_set(const struct attr *a, struct request *r);
/* Numbers, flags and choices, of whatever size. */
int64_t attr_number(const struct attr *a, const struct request *r);
void attr_set_number(const struct attr *a, struct request *r, int64_t v);
/* A choice by its word, in any case; false: there is none. */
bool attr_set_word(const struct attr *a, struct request *r, const char *word);
/* What request_init makes of it. */
int64_t attr_default(const struct attr *a);
/* Texts, hooks, types, and the word of a choice; NULL: none. */
const char *attr_text(const struct attr *a, const struct request *r);
int attr_choices(const struct attr *a); /* values that a choice may have, from 0 on */

/* Whether it differs from what request_init makes of it. */
bool attr_is_said(const struct attr *a, const struct request *r);
/* Whether two requests ask the same of it. */
bool attr_is_same(const struct attr *a, const struct request *x, const struct request *y);
/* Its value as people read it; nothing for kinds that are more than one value. */
void attr_say(const struct attr *a, const struct request *r, struct buf *out);
/* Its value as JSON, in the form of the wire. */
void attr_write(const struct attr *a, const struct request *r, struct jsonw *w);

/* Row i of the table, in the order in which help shows them; NULL behind the last. */
const struct attr *attr_at(size_t i);

/* By its name on the wire; NULL: there is none. */
const struct attr *attr_of_key(const char *key);

/* By name or alias, in any case; NULL when none of these doors (enum attr_door) has it. */
const struct attr *attr_find(const char *name, unsigned doors);

/* As request_init, but remembers that `gpus` has not been said, so that request_validate can
 * distinguish a contradiction from a default. Every door that uses attr_assign starts here and
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
/* The same for callers that name the option in front of the error, which does not then. */
int attr_set_named(struct request *r, const char *name, const char *value, enum attr_door door,
                   const struct when_clock *clock, struct err *e);

/* gpu-ids of which n are said, some by UUID: names (owned from now on) has them with commas,
 * until the daemon finds their numbers. */
int attr_take_gpu_names(struct request *r, char *names, int n, struct err *e);

/* What no single attribute can know: contradictions between them, and - for requests that
 * came over the wire - every range again. Completes gpus (from gpu-ids, else 1). A command
 * or argv must be there. ERR_USAGE. */
int request_validate(struct request *r, struct err *e);

/* An option about its time limit that has no effect, because there is none (of its own), or
 * without another option; NULL: none. why: ": a job without a time limit gets no warning". */
const char *request_idle_option(const struct request *r, const char **why);

/* In words, as it was understood: one "name  value" line for each thing that it asks for, names
 * as those of attributes, the command first (describe.c). */
void request_describe(const struct request *r, struct buf *out);

/* 0 when a job can be warned by it: not by KILL and STOP, which cannot be caught. */
int attr_check_signal(int signal, struct err *e);

#endif
