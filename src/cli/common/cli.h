/* What every verb of `berth` shares: the global options, the shape of a verb, how an error
 * becomes words and an exit status. A verb is one file with one cmd_ function; verbs.c has
 * the table. Data goes to standard output, words to standard error. */
#ifndef CLI_COMMON_CLI_H
#define CLI_COMMON_CLI_H

#include <jansson.h>
#include <stdbool.h>

struct err;
struct page;

/* The global options, from anywhere on the command line or the environment. Borrowed. */
struct cli {
    const char *dir;    /* --dir; NULL: BERTH_DIR or the user's instance */
    const char *socket; /* --socket or BERTH_SOCKET; NULL: the instance's */
    bool json;
    const struct verb *verbs; /* the table; ends with a NULL name */
    /* Receives a verb's page (opt.h) instead of its being printed (completion.c). */
    void (*on_page)(void *ctx, const struct page *page);
    void *on_page_ctx;
};

struct verb {
    const char *name;
    const char *help; /* one line for `berth help` */
    /* argv[0] is the verb. Returns the program's exit status. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

extern const struct verb cli_verbs[]; /* for main alone; verbs have it in struct cli */

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

/* compat_verb.c. Links to this program under the name of a drop-in command, as earlier versions
 * made them, go on working: whether argv[0] is one, and berth-compat in our place under that
 * name. The exit status, when there is no such program. */
bool cli_is_drop_in(const char *argv0);
int cli_run_drop_in(char **argv);

/* Bare `berth`: the machine and the queue. */
int cli_overview(struct cli *cli);

/* From here on messages begin with another name than berth, and errors with a word behind it:
 * "sbatch: error: words". Both are borrowed. */
void cli_speak_as(const char *name, const char *error);

/* "berth: words" to standard error; returns the error's exit status. */
int cli_fail(const struct err *e);
/* "berth: words" to standard error. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for a command line that makes no sense; returns 2. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct buf;
/* Writes to standard output in one go; the exit status: 0, or 1 when it could not be written,
 * which it says (a closed pipe is no error worth words). */
int cli_write(const void *bytes, size_t n);
/* 1 when some output could not be written so far, 0 when all was, or the reader has gone. */
int cli_output_status(void);
int cli_put(const struct buf *b);
/* Says that there is no such verb, and which is nearest; returns 2. */
int cli_unknown_verb(const struct cli *cli, const char *word);
/* Prints a JSON value and a newline to standard output. Returns the exit status. */
int cli_put_json(const json_t *value);
/* The same of an answer of the daemon's, an object, for --json: with the version of that. */
int cli_put_answer(json_t *answer);

#endif
