/* pyarg's results for command lines, for pyarg_test.py, which asks Python's argparse the same:
 * `--specs` prints the tables below as JSON; without it each input line is a JSON object with
 * a table and words, and each answer is one line. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "compat/py/pyarg.h"

#define ROWS_MAX  16
#define WORDS_MAX 16

/* The values parsed from a line, one per row in the table's order. */
struct said {
    struct pyarg_value of[ROWS_MAX], of_command[ROWS_MAX];
};

/* Every kind of row; the texts are long enough to be wrapped. */
static const struct pyarg tool_args[] = {
    PYARG_HELP_ROW,
    {"jobs_file", PYARG_STR, PYARG_INTO(struct said, of[1]),
     .help = "the file of jobs, one command a line"},
    {"--gpus", PYARG_STR, PYARG_INTO(struct said, of[2]),
     .help = "which GPUs may be used (default: all)", .metavar = "0,1,3"},
    {"--margin", PYARG_INT, PYARG_INTO(struct said, of[3]),
     .help = "kept free on every GPU, so that what grows does not hit "
             "its neighbour: 50% of it, and a word more",
     .metavar = "MIB"},
    {"--max-jobs", PYARG_FLOAT, PYARG_INTO(struct said, of[4]), .standard = "2.5"},
    {"--mode", PYARG_STR, PYARG_INTO(struct said, of[5]), .help = "how it goes", .letter = "-m",
     .choices = "fast,slow"},
    {"--verbose", PYARG_FLAG, PYARG_INTO(struct said, of[6]), .help = "say more",
     .letter = "-v"},
    {"--quiet", PYARG_FLAG, PYARG_INTO(struct said, of[7]), .letter = "-q"},
    {"--secret", PYARG_FLAG, PYARG_INTO(struct said, of[8]), .hidden = true},
    {"--version", PYARG_VERSION, .help = "show program's version number and exit",
     .metavar = "tool 1.0"},
    {"--a-very-long-option-name", PYARG_STR, PYARG_INTO(struct said, of[10]),
     .help = "beside its name there is no room"},
    {"second", PYARG_INT, PYARG_INTO(struct said, of[11]), .help = NULL},
    {0},
};

static const struct pyarg plain_args[] = {PYARG_HELP_ROW, {0}};
static const struct pyarg state_args[] = {
    PYARG_HELP_ROW,
    {"--state-file", PYARG_STR, PYARG_INTO(struct said, of[1]), .help = "where the state is"},
    {"--config", PYARG_STR, PYARG_INTO(struct said, of[2]), .letter = "-c"},
    {0},
};
static const struct pyarg start_args[] = {
    PYARG_HELP_ROW,
    {"--gpus", PYARG_INT, PYARG_INTO(struct said, of_command[1]), .help = "how many",
     .standard = "8"},
    {"--cuda", PYARG_STR, PYARG_INTO(struct said, of_command[2]), .choices = "local,physical"},
    {"--screen", PYARG_FLAG, PYARG_INTO(struct said, of_command[3]), .help = "in sessions"},
    {0},
};
static const struct pyarg pause_args[] = {
    PYARG_HELP_ROW,
    {"gpu_id", PYARG_INT, PYARG_INTO(struct said, of_command[1]), .help = "the GPU"},
    {"how", PYARG_STR, PYARG_INTO(struct said, of_command[2]), .choices = "soft,hard"},
    {0},
};
static const struct pyarg_command commands[] = {
    {"start", "start it", start_args},
    {"pause-a-gpu-for-good",
     "start nothing more on a GPU until somebody says that it is fine again", pause_args},
    {"status", "show it", plain_args},
    {0},
};

static const struct pyarg_parser parsers[] = {
    {.prog = "tool",
     .about = "What it is for, in so many words that two lines are needed for all "
              "of them on a terminal of the usual size.",
     .args = tool_args},
    {.prog = "few.py", .args = plain_args},
    {.prog = "scheduler.py",
     .about = "Schedules",
     .args = plain_args,
     .commands = commands,
     .dest = "command"},
    {.prog = "tenx", .args = state_args, .commands = commands, .dest = "command"},
    {.prog = "free",
     .args = state_args,
     .commands = commands,
     .dest = "command",
     .needs_no_command = true},
};
#define PARSERS (sizeof parsers / sizeof parsers[0])

static json_t *
spec_of_args(const struct pyarg *args)
{
    static const char *const types[] = {"str",  "int",  "float",  "any",
                                        "flag", "help", "version"};
    json_t *rows = json_array();

    for (const struct pyarg *a = args; a->name; a++)
        json_array_append_new(rows, json_pack("{s:s,s:s?,s:s,s:s?,s:s?,s:s?,s:s?,s:b}", "name",
                                              a->name, "letter", a->letter, "type",
                                              types[a->type], "metavar", a->metavar, "help",
                                              a->help, "choices", a->choices, "standard",
                                              a->standard, "hidden", a->hidden));
    return rows;
}

static int
print_specs(void)
{
    json_t *all = json_array();

    for (size_t i = 0; i < PARSERS; i++) {
        const struct pyarg_parser *p = &parsers[i];
        json_t *cmds = json_array();

        for (const struct pyarg_command *c = p->commands; c && c->name; c++)
            json_array_append_new(cmds, json_pack("{s:s,s:s,s:o}", "name", c->name, "help",
                                                  c->help, "args", spec_of_args(c->args)));
        json_array_append_new(all, json_pack("{s:s,s:s?,s:o,s:o,s:s?,s:b}", "prog", p->prog,
                                             "about", p->about, "args", spec_of_args(p->args),
                                             "commands", cmds, "dest", p->dest,
                                             "needs_no_command", p->needs_no_command));
    }
    json_dumpf(all, stdout, 0);
    json_decref(all);
    return 0;
}

static void
add_values(json_t *out, const struct pyarg *args, const struct pyarg_value *v)
{
    for (size_t i = 0; args[i].name; i++) {
        const char *name = args[i].name + strspn(args[i].name, "-");
        json_t *value = json_null();

        if (args[i].type == PYARG_FLAG)
            value = json_boolean(v[i].text);
        else if (v[i].text && args[i].type == PYARG_INT)
            value = json_integer(v[i].i);
        else if (v[i].text && args[i].type == PYARG_FLOAT)
            value = json_real(v[i].f);
        else if (v[i].text)
            value = json_string(v[i].text);
        if (args[i].type < PYARG_HELP)
            json_object_set_new(out, name, value);
    }
}

/* Parses the whole line as every tool does. NULL: parsing ended with *status. */
static json_t *
read_line(const struct pyarg_parser *p, int argc, char **argv, int *status)
{
    struct said said = {0};
    int command = pyarg_read(p, argc, argv, &said, status);
    json_t *out;

    if (command == PYARG_EXIT)
        return NULL;
    out = json_object();
    add_values(out, p->args, said.of);
    if (p->commands)
        json_object_set_new(
            out, p->dest, command >= 0 ? json_string(p->commands[command].name) : json_null());
    if (p->commands && command >= 0)
        add_values(out, p->commands[command].args, said.of_command);
    return out;
}

static json_t *
take_text(int fd)
{
    char text[16384];
    ssize_t n = pread(fd, text, sizeof text, 0);

    close(fd);
    return json_stringn(text, n > 0 ? (size_t)n : 0);
}

static json_t *
answer(const json_t *question)
{
    const json_t *words = json_object_get(question, "argv"), *columns;
    const struct pyarg_parser *p =
        &parsers[json_integer_value(json_object_get(question, "spec"))];
    int argc = 1, status = 0, out = memfd_create("out", 0), err = memfd_create("err", 0);
    int keep_out = dup(STDOUT_FILENO), keep_err = dup(STDERR_FILENO);
    char *argv[WORDS_MAX] = {(char *)p->prog};
    json_t *values, *word;
    size_t i;

    json_array_foreach(words, i, word) argv[argc++] = (char *)json_string_value(word);
    columns = json_object_get(question, "columns");
    setenv("COLUMNS", json_string_value(columns), 1);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    values = read_line(p, argc, argv, &status);
    dup2(keep_out, STDOUT_FILENO);
    dup2(keep_err, STDERR_FILENO);
    close(keep_out);
    close(keep_err);
    return json_pack("{s:o,s:i,s:o,s:o}", "values", values ? values : json_null(), "status",
                     status, "out", take_text(out), "err", take_text(err));
}

int
main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    if (argc > 1 && strcmp(argv[1], "--specs") == 0)
        return print_specs();
    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_t *question = json_loadb(line, (size_t)n, 0, NULL), *reply;

        if (!question)
            err_abort("no question: %s", line);
        reply = answer(question);
        json_dumpf(reply, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(reply);
        json_decref(question);
    }
    free(line);
    return 0;
}
