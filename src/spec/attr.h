/* The attributes of a job: a single table that drives parsing, storage, comparison and
 * display. To add an attribute, add a row in attr.c. Pure. */
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

/* Where an attribute's text comes from. An attribute means the same at every door; a row that
 * is closed at one door says why. The socket accepts all of them, by the names in
 * docs/protocol.md. */
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
#define LIMIT_MAX_MS      (36500LL * 24 * 3600 * 1000) /* the bound of parse_duration_ms */

/* Type and unit of a field: how it is parsed, sent, stored and shown. */
enum attr_kind {
    ATTR_NOTHING,  /* a title, or another name for a field that another row holds */
    ATTR_FLAG,     /* bool, or a uint8_t that is 0 or 1 */
    ATTR_INT,      /* int32_t */
    ATTR_MIB,      /* int32_t */
    ATTR_PERMILLE, /* int32_t, thousandths */
    ATTR_TENTHS,   /* uint8_t, a version such as 8.6 */
    ATTR_MS,       /* int64_t */
    ATTR_US,       /* int64_t, a moment on the wall clock */
    ATTR_CHOICE,   /* an index into words; stored as an enum or a byte (size) */
    ATTR_TEXT,     /* char *, owned; NULL: not set */
    ATTR_LIST,     /* char **, owned, NULL-terminated; NULL: not set */
    ATTR_HOOK,     /* the same as ATTR_TEXT, in struct hooks */
    ATTR_MAIL,     /* struct hooks' mail_types */
    ATTR_CARDS,    /* uint64_t, a set of indices */
    ATTR_IDS,      /* struct demand's ids and n_ids */
    ATTR_TYPE,     /* struct demand's gpu_type */
    ATTR_TASKS,    /* struct task_set */
    ATTR_DEPS,     /* struct request's deps */
};

/* Who sees the field in a job's object, where the settings hide jobs from other users. */
enum attr_sight {
    ATTR_ALL_SEE,
    ATTR_PRIVATE, /* other users see it unless jobs are hidden */
    ATTR_CUT,     /* the same, but other users see only the beginning of it */
    ATTR_MINE,    /* the job's user and admins only, always */
};

/* One row describes a field of struct request: its names, type, range and columns. A field
 * without a name belongs to the named row before it. All code that handles attributes
 * generically iterates over these rows: options, scripts, jobs files, wire and store (both
 * directions), comparison, a job's object, `submit --dry-run`. */
struct attr {
    const char *name;                      /* "gpu-ids"; `_` is accepted for `-` in text */
    const char *aliases[ATTR_ALIASES_MAX]; /* NULL-terminated unless full */
    char letter;                           /* short option, 'G'; '\0': none */
    unsigned doors;      /* enum attr_door bits; 0: a title, or a field without a name */
    const char *metavar; /* "SIZE"; NULL: a bare word such as `hold` */
    const char *closed;  /* why a door is closed, and the alternative; NULL: none is closed */
    const char *help;    /* one line, no full stop */
    /* Parses value (never NULL) into the field. NULL: parse by kind, within min and max. */
    int (*set)(struct request *r, const char *value, struct err *e);
    /* Replaces set in rows that need the current time. */
    int (*set_at)(struct request *r, const char *value, const struct when_clock *clock,
                  struct err *e);

    enum attr_kind kind;
    size_t at;   /* offset in struct request, or in struct hooks for hooks */
    size_t size; /* of the field */
    int64_t min,
        max; /* of numbers; for lists, of the number of entries. The default may be outside */
    const char *const
        *words;   /* names of a choice, NULL-terminated; the first may be NULL: not set */
    size_t bytes; /* maximum length of a plain, non-empty text; 0: any text */
    int (*check)(const char *text, struct err *e); /* further check of a text; may be NULL */

    const char *want; /* of a list: what follows "must be" in its error */

    const char *key;    /* on the wire; NULL: the row has no field */
    const char *column; /* in the store's table of jobs; NULL: key */
    const char *json;   /* in a job's object; NULL: key */
    enum attr_sight sight;
    bool unshown; /* omitted from a job's object */
    bool always;  /* a number is in a job's object even if it was not set */
    bool apart;   /* has a line of its own at the end of `show` and of --dry-run's output */
    bool settled; /* a jobs file cannot change it, or its change is compared elsewhere */
    /* True if the field is sent over the wire. NULL: if it differs from request_init's
     * default. */
    bool (*is_said)(const struct request *r);
};

/* Address of the field. Rows of hooks need r->hooks. */
static inline void *
attr_field(const struct attr *a, const struct request *r)
{
    bool is_hook = a->kind == ATTR_HOOK || a->kind == ATTR_MAIL;

    return (is_hook ? (char *)r->hooks : (char *)r) + a->at;
}

/* The same, but allocates r->hooks if needed. */
void *attr_field_to_set(const struct attr *a, struct request *r);
/* Numbers, flags and choices, of any size. */
int64_t attr_number(const struct attr *a, const struct request *r);
void attr_set_number(const struct attr *a, struct request *r, int64_t v);
/* Sets a choice by its name, ignoring case; false: no such name. */
bool attr_set_word(const struct attr *a, struct request *r, const char *word);
/* The value that request_init sets. */
int64_t attr_default(const struct attr *a);
/* Texts, hooks, types, and the name of a choice; NULL: none. */
const char *attr_text(const struct attr *a, const struct request *r);
int attr_choices(const struct attr *a); /* number of values of a choice, which start at 0 */

/* True if the field differs from request_init's default. */
bool attr_is_said(const struct attr *a, const struct request *r);
/* True if both requests have the same value. */
bool attr_is_same(const struct attr *a, const struct request *x, const struct request *y);
/* Appends the value as people read it; nothing for kinds that hold several values. */
void attr_say(const struct attr *a, const struct request *r, struct buf *out);
/* Writes the value as JSON, as on the wire. */
void attr_write(const struct attr *a, const struct request *r, struct jsonw *w);

/* Row i of the table, in the order of the help; NULL after the last. */
const struct attr *attr_at(size_t i);

/* Finds a row by its name on the wire; NULL: none. */
const struct attr *attr_of_key(const char *key);

/* Finds a row by name or alias, ignoring case; NULL if it is open at none of these doors (enum
 * attr_door). */
const struct attr *attr_find(const char *name, unsigned doors);

/* Like request_init, but records that `gpus` is not set yet, so that request_validate can
 * distinguish a contradiction from a default. Every door that uses attr_assign starts with
 * this and ends with request_validate. */
void request_begin(struct request *r);

/* Sets one attribute from text. value NULL: a bare word (`hold`); a bare word also accepts yes
 * or no (`hold=no`). The last assignment wins. Errors (ERR_USAGE) name the attribute, the
 * value and what is valid; for an unknown name they suggest the nearest. */
int attr_assign(struct request *r, const char *name, const char *value, enum attr_door door,
                struct err *e);
/* The same with a clock, which times such as 16:00 need (spec/when.h). */
int attr_set_at(struct request *r, const char *name, const char *value, enum attr_door door,
                const struct when_clock *clock, struct err *e);
/* The same for callers that prefix errors with the option's name, which the error then
 * omits. */
int attr_set_named(struct request *r, const char *name, const char *value, enum attr_door door,
                   const struct when_clock *clock, struct err *e);

/* Sets gpu-ids to n GPUs, some of them named by UUID. Takes ownership of names, a
 * comma-separated list that is kept until the daemon resolves it to indices. */
int attr_take_gpu_names(struct request *r, char *names, int n, struct err *e);

/* Checks what no single attribute can: contradictions between attributes and, for requests
 * from the wire, every range again. Completes gpus (from gpu-ids, else 1). A command or argv
 * is required. ERR_USAGE. */
int request_validate(struct request *r, struct err *e);

/* Finds an option that has no effect: one about the time limit where the job sets none of its
 * own, or one that needs another option. NULL: none. *why: ": a job without a time limit gets
 * no warning". */
const char *request_idle_option(const struct request *r, const char **why);

/* Prints the request as it was understood: one "name  value" line per attribute that is set,
 * the command first (describe.c). */
void request_describe(const struct request *r, struct buf *out);

/* 0 if signal can warn a job: any but KILL and STOP, which cannot be caught. */
int attr_check_signal(int signal, struct err *e);

#endif
