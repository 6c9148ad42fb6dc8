/* Drop-in commands: Berth behind the names, options, files and messages of other schedulers.
 * Each front end only translates; the queue, ledger and store are the daemon's, reached over
 * the same protocol as every Berth command. Front ends share: pyarg.h (options as Python's
 * argparse reads them), pytext.h (numbers, texts and JSON as Python writes them),
 * line_records.h (files of JSON lines), compat_paths.h (file names for the daemon),
 * pick_daemon.h (choice of the daemon), takeover.h (the lock, and jobs left with another
 * daemon), compat_session.h (the daemon's events, signals, changed files), sent_lines.h (lines
 * of a file as jobs), compat_cards.h (the daemon's GPUs). */
#ifndef COMPAT_COMPAT_H
#define COMPAT_COMPAT_H

#include <jansson.h>
#include <stdbool.h>

#define COMPAT_ALIASES_MAX 3

struct compat_tool {
    const char *name;                        /* as typed */
    const char *aliases[COMPAT_ALIASES_MAX]; /* other names; NULL ends the list early */
    const char *help; /* one line; NULL: internal, neither listed nor installed */
    /* argv[0] is the name it was called by. Returns the exit status. */
    int (*run)(int argc, char **argv);
    const char *group; /* name of a group, installed only when the group or the command is
                          named, since the machine may have the originals; NULL: none */
};

extern const struct compat_tool compat_tools[]; /* terminated by a NULL name */

/* The file name of argv0, without its folder; points into argv0. */
const char *compat_name(const char *argv0);

/* Print "NAME: message", or only the message if name is NULL, to standard error. Returns
 * status. */
int compat_fail(int status, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Print the message and a newline to standard output. Returns the exit status. */
int compat_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Add text, of any bytes, to the set; true if it was not in it. *set starts as NULL; the
 * caller frees it. */
bool compat_first_time(json_t **set, const char *text);

/* compat_install.c: link commands into a folder, and remove all of them. Return the exit
 * status. */
/* n_chosen 0: all commands without a group. */
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
