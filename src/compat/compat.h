/* Drop-in commands: Berth under the names, options, files and words of other schedulers. A
 * front end is a file of its own that translates; queue, ledger and store behind it are the
 * daemon's, reached as every verb reaches it. What front ends share: pyarg.h (options as
 * Python's argparse reads them), pytext.h (numbers, texts and JSON as Python writes them),
 * line_records.h (files of JSON lines), compat_paths.h (names of files for the daemon),
 * pick_daemon.h (which daemon), takeover.h (the lock, and what another daemon still has),
 * compat_session.h (its events, signals, files that change), sent_lines.h (lines of a file as
 * its jobs), compat_cards.h (its cards). */
#ifndef COMPAT_COMPAT_H
#define COMPAT_COMPAT_H

#include <jansson.h>
#include <stdbool.h>

#define COMPAT_ALIASES_MAX 3

struct compat_tool {
    const char *name;                        /* what is typed */
    const char *aliases[COMPAT_ALIASES_MAX]; /* other names; NULL: no more */
    const char *help; /* one line; NULL: not for people, without a link */
    /* argv[0] is the name it goes by. Returns the program's exit status. */
    int (*run)(int argc, char **argv);
    const char *group; /* a name for several; they are installed only by it or their own: a
                          machine may have the originals. NULL: none */
};

extern const struct compat_tool compat_tools[]; /* ends with a NULL name */

/* The name that a program goes by, without the folder in front. */
const char *compat_name(const char *argv0);

/* "NAME: words", or without a name the words alone, to standard error; returns status. */
int compat_fail(int status, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Words and a newline to standard output; the exit status. */
int compat_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Whether a text, of whatever bytes, is new to a set of them, which it is in then. *set: NULL
 * at first, and the caller's. */
bool compat_first_time(json_t **set, const char *text);

/* compat_install.c: names into a folder, and all of them out of it. The exit status. */
/* n_chosen 0: all without a group. */
int compat_install(const char *dir, char *const *chosen, int n_chosen);
int compat_remove(const char *dir);

int compat_gpusched(int argc, char **argv);
int compat_simjob(int argc, char **argv);
int compat_cudaq(int argc, char **argv);
int compat_mgpu_server(int argc, char **argv);
int compat_mgpu_srun(int argc, char **argv);
int compat_mgpu_queue(int argc, char **argv);
int compat_mgpu_cancel(int argc, char **argv);
int compat_scheduler(int argc, char **argv);
int compat_scheduler_10x(int argc, char **argv);
int compat_scheduler_job(int argc, char **argv);
int compat_sbatch(int argc, char **argv);
int compat_sacct(int argc, char **argv);
int compat_scancel(int argc, char **argv);
int compat_scontrol(int argc, char **argv);
int compat_salloc(int argc, char **argv);
int compat_srun(int argc, char **argv);
int compat_sinfo(int argc, char **argv);
int compat_squeue(int argc, char **argv);

#endif
