/* What the tests of the GPU layer share: folders of their own, files, children on pipes. */
#ifndef TESTS_GPU_SUPPORT_H
#define TESTS_GPU_SUPPORT_H

#include <jansson.h>
#include <sys/types.h>

/* Makes a new empty folder. support_remove_dir removes it with its content, and frees it. */
char *support_make_dir(void);
void support_remove_dir(char *dir);

/* Writes text to DIR/NAME by rename, so that no reader sees half of it. */
void support_write(const char *dir, const char *name, const char *text);

/* The path of a program or library, from a variable that meson sets for these tests. */
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
/* The next line of its output as JSON; the test fails if none comes within 20 s. */
json_t *child_json(struct child *c);
/* Everything from fd until end of file. The caller frees it. */
char *child_read_all(int fd);
/* 1 if nothing appears on its output for ms. */
int child_is_silent(struct child *c, int ms);
/* Closes its input and waits. Returns the exit status, or 128 + N for signal N. */
int child_end(struct child *c);

/* Check the value at a path like "gpus.0.uuid": a string, an integer, or null. */
void check_str(json_t *v, const char *path, const char *want);
void check_int(json_t *v, const char *path, long long want);
void check_null(json_t *v, const char *path);
void check_size(json_t *v, const char *path, size_t want);

#endif
