/* What the tests of the GPU layer share: folders of their own, files, children on pipes. */
#ifndef TESTS_GPU_SUPPORT_H
#define TESTS_GPU_SUPPORT_H

#include <jansson.h>
#include <sys/types.h>

/* A new empty folder, removed with all in it by support_remove_dir, which also frees. */
char *support_make_dir(void);
void support_remove_dir(char *dir);

/* DIR/NAME := text, by rename, so that no reader sees half of it. */
void support_write(const char *dir, const char *name, const char *text);

/* A variable that meson sets for these tests: where a program or a library lies. */
const char *support_path(const char *variable);

/* A child with pipes on its standard input, output and error. */
struct child {
    pid_t pid;
    int in;
    int out;
    int err;
};

/* Starts argv (NULL-terminated) with the environment of the test. */
struct child child_start(const char *const *argv);
void child_say(struct child *c, const char *line);
/* The next line of its output as JSON; the test fails when none comes in 20 s. */
json_t *child_json(struct child *c);
/* Everything from fd until its end. Freed by the caller. */
char *child_read_all(int fd);
/* 1 when nothing comes on its output for ms. */
int child_is_silent(struct child *c, int ms);
/* Closes its input and waits. The exit status, 128 + N for signal N. */
int child_end(struct child *c);

/* Checks a path like "gpus.0.uuid" in a value: a string, an integer, or null. */
void check_str(json_t *v, const char *path, const char *want);
void check_int(json_t *v, const char *path, long long want);
void check_null(json_t *v, const char *path);
void check_size(json_t *v, const char *path, size_t want);

#endif
