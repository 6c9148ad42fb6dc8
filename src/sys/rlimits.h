/* Resource limits (ulimit) on their way from the shell that submits to the job: read from
 * the kernel, kept as one line of text, set just before the command is executed. */
#ifndef SYS_RLIMITS_H
#define SYS_RLIMITS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct buf;
struct err;

#define RLIMITS_TEXT_MAX 1024 /* bytes of the text, with its NUL */

struct rlimits {
    struct {
        bool is_set;
        struct rlimit value;
    } of[RLIM_NLIMITS];
};

/* "nofile=1024:524288 core=0:- ...", soft and hard, "-" unlimited, of a process. -1 when
 * there is none. */
int rlimits_of(pid_t pid, struct buf *out);

/* Appends one of them (RLIMIT_...) to such a text. */
void rlimits_add(struct buf *out, int which, const struct rlimit *value);

/* Reads it back. What is missing keeps whatever it is. */
int rlimits_parse(const char *text, struct rlimits *out, struct err *e);

/* Bounds what a process had by what a login of its user has: a hard limit above the login's is
 * no login's, and the login's soft and hard limit count instead. */
void rlimits_bound(struct rlimits *own, const struct rlimits *login);

/* Sets them in this process, in two parts: the length of files last, since the process has
 * still something of ours to write. Where a hard limit may not be raised, it and the soft one
 * stay at what is allowed. System calls only. 0 or an errno value. */
int rlimits_apply(const struct rlimits *limits);
int rlimits_apply_fsize(const struct rlimits *limits);

#endif
