/* Shared by all verbs of `berth`: global options, the form of a verb, and how an error becomes
 * a message and an exit status. A verb is a file with a cmd_ function; verbs.c has the table.
 * Data goes to standard output, messages to standard error. */
#ifndef CLI_COMMON_CLI_H
#define CLI_COMMON_CLI_H

#include <jansson.h>
#include <stdbool.h>

struct err;
struct page;

/* The global options, from any place on the command line or from the environment. Borrowed. */
struct cli {
    const char *dir;    /* --dir; NULL: BERTH_DIR or the user's instance */
    const char *socket; /* --socket or BERTH_SOCKET; NULL: the instance's */
    bool json;
    const struct verb *verbs; /* the table, terminated by a NULL name */
    /* If set, receives a verb's page (opt.h) instead of printing it (completion.c). */
    void (*on_page)(void *ctx, const struct page *page);
    void *on_page_ctx;
};

struct verb {
    const char *name;
    const char *help; /* one line for `berth help` */
    /* argv[0] is the verb. Returns the program's exit status. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

extern const struct verb cli_verbs[]; /* for main only; verbs use the pointer in struct cli */

int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_submit(struct cli *cli, int argc, char **argv);
int cmd_queue(struct cli *cli, int argc, char **argv);
int cmd_show(struct cli *cli, int argc, char **argv);
int cmd_explain(struct cli *cli, int argc, char **argv);
int cmd_report(struct cli *cli, int argc, char **argv);
int cmd_history(struct cli *cli, int argc, char **argv);
int cmd_priority(struct cli *cli, int argc, char **argv);
int cmd_requeue(struct cli *cli, int argc, char **argv);
int cmd_logs(struct cli *cli, int argc, char **argv);
int cmd_attach(struct cli *cli, int argc, char **argv);
int cmd_shell(struct cli *cli, int argc, char **argv);
int cmd_cancel(struct cli *cli, int argc, char **argv);
int cmd_hold(struct cli *cli, int argc, char **argv);
int cmd_release(struct cli *cli, int argc, char **argv);
int cmd_signal(struct cli *cli, int argc, char **argv);
int cmd_screens(struct cli *cli, int argc, char **argv);
int cmd_wait(struct cli *cli, int argc, char **argv);
int cmd_gpus(struct cli *cli, int argc, char **argv);
int cmd_pause(struct cli *cli, int argc, char **argv);
int cmd_resume(struct cli *cli, int argc, char **argv);
int cmd_health(struct cli *cli, int argc, char **argv);
int cmd_metrics(struct cli *cli, int argc, char **argv);
int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_events(struct cli *cli, int argc, char **argv);
int cmd_daemon(struct cli *cli, int argc, char **argv);
int cmd_config(struct cli *cli, int argc, char **argv);
int cmd_doctor(struct cli *cli, int argc, char **argv);
int cmd_simulate(struct cli *cli, int argc, char **argv);
int cmd_export(struct cli *cli, int argc, char **argv);
int cmd_compat(struct cli *cli, int argc, char **argv);
int cmd_top(struct cli *cli, int argc, char **argv);
int cmd_completion(struct cli *cli, int argc, char **argv);
int cmd_version(struct cli *cli, int argc, char **argv);
int cmd_help(struct cli *cli, int argc, char **argv);

/* compat_verb.c. Earlier versions made links to this program under the names of the drop-in
 * commands, and these still work. cli_is_drop_in: true if argv[0] is such a name.
 * cli_run_drop_in: replaces this process by berth-compat under that name; returns an exit
 * status if there is no such program. */
bool cli_is_drop_in(const char *argv0);
int cli_run_drop_in(char **argv);

/* Bare `berth`: prints the machine and the queue. */
int cli_overview(struct cli *cli);

/* Sets the prefix of messages in place of "berth", and a word that follows it in errors:
 * "sbatch: error: words". Both are borrowed. */
void cli_speak_as(const char *name, const char *error);

/* Prints "berth: words" to standard error; returns the error's exit status. */
int cli_fail(const struct err *e);
/* Prints "berth: words" to standard error. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for an invalid command line; returns 2. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct buf;
/* Writes to standard output. Exit status 0, or 1, with an error printed, if writing failed
 * (for a closed pipe, nothing is printed). */
int cli_write(const void *bytes, size_t n);
/* 1 if any output could not be written so far; 0 if all was, or the reader has closed the
 * pipe. */
int cli_output_status(void);
int cli_put(const struct buf *b);
/* Prints an error about an unknown verb, with the nearest one; returns 2. */
int cli_unknown_verb(const struct cli *cli, const char *word);
/* Prints a JSON value and a newline to standard output. Returns the exit status. */
int cli_put_json(const json_t *value);
/* The same for the daemon's answer, an object, for --json: adds the version of the format. */
int cli_put_answer(json_t *answer);

#endif
