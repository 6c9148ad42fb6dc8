/* Waits for events instead of time spans, for the end-to-end tests.
 *
 *     await pid SECONDS PID...                        these processes have ended
 *     await gone SECONDS                              only its callers have $BERTH_E2E_MARK
 *     await event SECONDS [--after SEQ] KEY=VALUE...  an event has all of these; prints it
 *     await output SECONDS FILE REGEX                 a line of FILE matches; prints it
 *     await until SECONDS COMMAND PATH VALUE          what COMMAND prints has VALUE at PATH
 *     await prints SECONDS COMMAND REGEX              a line that COMMAND prints matches
 *     await screen SECONDS SOCKET REGEX               a line of tmux's screen matches
 *     await noscreen SECONDS SOCKET REGEX             none matches
 *
 * and without waiting:
 *
 *     await list                  prints the processes with $BERTH_E2E_MARK
 *     await match KEY=VALUE...    prints the lines of standard input that match
 *     await json PATH             prints the value at PATH (a.0.b; . is all) of standard input
 *
 * `event` reads all events from the first on; FILE may still grow. `until` and `prints` execute
 * COMMAND again and again, for what no event announces: words between spaces, and a shell's.
 * REGEX is an extended one, as grep -E has it. Exit status 1 when the time is over or there is
 * no such value, 2 for a wrong command line or input that is no JSON.
 *
 * A program, because a test calls it some twenty times and starting an interpreter each time
 * took half of what the tests cost. Without memory to free: it ends when it has its answer. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 20 /* pause between polls, to leave the processor to others */
#define WRONG    2

/* A growing text. */
struct text {
    char *data;
    size_t len, cap;
};

static void *
grown(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p)
        err(WRONG, NULL);
    return p;
}

static void
text_add(struct text *t, const char *bytes, size_t n)
{
    if (!t->data || t->len + n + 1 > t->cap)
        t->data = grown(t->data, t->cap = 2 * t->cap + n + 1);
    memcpy(t->data + t->len, bytes, n);
    t->data[t->len += n] = '\0';
}

static int64_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static int
ms_left(int64_t deadline)
{
    int64_t left = deadline - now_ms();
    return left > 0 ? (int)left : 0;
}

static void
pause_a_little(void)
{
    poll(NULL, 0, PAUSE_MS);
}

static regex_t
compiled(const char *pattern)
{
    regex_t re;
    int rc = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
    if (rc) {
        char why[200];
        regerror(rc, &re, why, sizeof why);
        errx(WRONG, "'%s': %s", pattern, why);
    }
    return re;
}

/* --- processes --- */

static pid_t
parent_of(pid_t pid)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(line, 1, sizeof line - 1, f);
    line[n] = '\0';
    fclose(f);
    const char *name_end = strrchr(line, ')'); /* the name may contain any character */
    return name_end ? (pid_t)strtol(name_end + strlen(") S "), NULL, 10) : 0;
}

/* True for this process and its ancestors, which may have the mark without being leftovers. */
static bool
is_of_own_line(pid_t pid)
{
    for (pid_t p = getpid(); p > 1; p = parent_of(p))
        if (p == pid)
            return true;
    return false;
}

static bool
bears(pid_t pid, const char *mark)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false; /* it exited, or is not ours */
    char *value = NULL;
    size_t cap = 0;
    bool found = false;
    while (!found && getdelim(&value, &cap, '\0', f) > 0)
        found = strcmp(value, mark) == 0;
    free(value);
    fclose(f);
    return found;
}

/* The processes with the mark, except the callers; the list ends with 0. */
static pid_t *
marked(void)
{
    const char *value = getenv("BERTH_E2E_MARK");
    char mark[200];
    snprintf(mark, sizeof mark, "BERTH_E2E_MARK=%s", value ? value : "");
    DIR *proc = opendir("/proc");
    if (!proc)
        err(WRONG, "/proc");
    pid_t *pids = grown(NULL, sizeof *pids);
    size_t n = 0;
    const struct dirent *entry;
    while ((entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || !bears(pid, mark) || is_of_own_line(pid))
            continue;
        pids = grown(pids, (n + 2) * sizeof *pids);
        pids[n++] = pid;
    }
    closedir(proc);
    pids[n] = 0;
    return pids;
}

/* True when the process has ended (a zombie counts: only its parent can reap it). */
static bool
wait_for_pid(pid_t pid, int64_t deadline)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ESRCH)
        return true;
    if (fd < 0)
        err(WRONG, "process %d", pid);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;
    do
        rc = poll(&p, 1, ms_left(deadline));
    while (rc < 0 && errno == EINTR);
    close(fd);
    return rc > 0;
}

/* Ends of marked processes may create new ones, so look again until none is left. */
static bool
wait_until_gone(int64_t deadline)
{
    for (;;) {
        pid_t *pids = marked();
        bool none = !pids[0];
        for (size_t i = 0; pids[i]; i++)
            if (!wait_for_pid(pids[i], deadline))
                return false;
        free(pids);
        if (none)
            return true;
    }
}

/* A command whose standard output is read. */
struct child {
    pid_t pid;
    int fd;
};

static struct child
start(char *const *argv, bool quiet)
{
    struct child c;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        err(WRONG, "pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    if (quiet)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&c.pid, argv[0], &actions, NULL, argv, environ);
    if (rc)
        errx(WRONG, "%s: %s", argv[0], strerror(rc));
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    c.fd = fds[0];
    return c;
}

static int
end_of(struct child c)
{
    int status = 0;
    close(c.fd);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Everything the command prints, and its wait status. The caller frees it. */
static char *
output_of(char *const *argv, bool quiet, int *status)
{
    struct child c = start(argv, quiet);
    struct text out = {0};
    char bytes[65536];
    ssize_t n;
    text_add(&out, "", 0);
    while ((n = read(c.fd, bytes, sizeof bytes)) > 0)
        text_add(&out, bytes, (size_t)n);
    *status = end_of(c);
    return out.data;
}

/* --- JSON --- */

/* The shortest of the usual texts of a number that parses back to the same number. */
static void
add_real(struct text *out, double value)
{
    char s[64];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, value);
        if (strtod(s, NULL) == value)
            break;
    }
    text_add(out, s, strlen(s));
    if (!strpbrk(s, ".en"))
        text_add(out, ".0", 2);
}

/* Strings bare, everything else as JSON without spaces. The caller frees it. */
static char *
text_of(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_real(value)) {
        struct text out = {0};
        add_real(&out, json_real_value(value));
        return out.data;
    }
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

/* Borrowed; NULL if the document has no such value. */
static const json_t *
value_at(const json_t *document, const char *path)
{
    char *steps = strdup(path), *rest = steps, *step;
    while (document && (step = strsep(&rest, ".")))
        if (*step && json_is_array(document)) {
            long at = strtol(step, NULL, 10);
            size_t from = at < 0 ? json_array_size(document) : 0;
            document = json_array_get(document, from + (size_t)at);
        } else if (*step)
            document = json_object_get(document, step);
    free(steps);
    return document;
}

static bool
is_value(const json_t *document, const char *path, const char *wanted)
{
    const json_t *value = value_at(document, path);
    char *text = value ? text_of(value) : NULL;
    bool is = text && strcmp(text, wanted) == 0;
    free(text);
    return is;
}

/* `words`: a NULL-terminated list of KEY=VALUE. */
static bool
matches(const char *line, char *const *words, int64_t after)
{
    json_error_t why;
    json_t *event = json_loads(line, JSON_DISABLE_EOF_CHECK, &why);
    if (!event)
        errx(WRONG, "no JSON (%s): %s", why.text, line);
    bool fits = json_integer_value(json_object_get(event, "seq")) > after || after < 0;
    for (; fits && *words; words++) {
        const char *equals = strchr(*words, '=');
        if (!equals)
            errx(WRONG, "'%s' is not KEY=VALUE", *words);
        char *key = strndup(*words, (size_t)(equals - *words));
        const json_t *value = json_object_get(event, key);
        char *text = value ? text_of(value) : NULL;
        fits = text && strcmp(text, equals + 1) == 0;
        free(text);
        free(key);
    }
    json_decref(event);
    return fits;
}

/* --- waits --- */

/* The first matching line of `berth events`; false if its output ends without one. */
static bool
follow_events(int64_t deadline, char *const *words, int64_t after)
{
    char *argv[] = {"berth", "events", "-f", "--since", "0", NULL};
    struct child c = start(argv, true);
    struct pollfd p = {.fd = c.fd, .events = POLLIN};
    struct text line = {0};
    char bytes[65536];
    bool found = false;
    while (!found && poll(&p, 1, ms_left(deadline)) > 0) {
        ssize_t n = read(c.fd, bytes, sizeof bytes);
        if (n <= 0)
            break;
        const char *at = bytes, *end = bytes + n, *newline;
        while (!found && (newline = memchr(at, '\n', (size_t)(end - at)))) {
            text_add(&line, at, (size_t)(newline - at));
            at = newline + 1;
            found = matches(line.data, words, after);
            if (found)
                puts(line.data);
            line.len = 0;
        }
        if (!found)
            text_add(&line, at, (size_t)(end - at));
    }
    kill(c.pid, SIGKILL);
    end_of(c);
    return found;
}

/* A daemon that is restarting has no events for a moment: then ask again. */
static bool
wait_for_event(int64_t deadline, char *const *words)
{
    int64_t after = 0;
    if (words[0] && words[1] && strcmp(words[0], "--after") == 0) {
        after = strtoll(words[1], NULL, 10);
        words += 2;
    }
    do
        if (follow_events(deadline, words, after))
            return true;
    while (pause_a_little(), ms_left(deadline));
    return false;
}

/* The file may not exist yet, and its last line may still grow, so it is polled. */
static bool
wait_for_output(int64_t deadline, const char *path, const char *pattern)
{
    regex_t re = compiled(pattern);
    static struct text rest; /* an incomplete line */
    off_t at = 0;
    for (; ms_left(deadline); pause_a_little()) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            err(WRONG, "%s", path);
        if (fd < 0)
            continue;
        struct stat st;
        if (fstat(fd, &st) == 0 && st.st_size < at) /* truncated or replaced */
            at = 0, rest.len = 0;
        char bytes[65536];
        ssize_t n;
        while ((n = pread(fd, bytes, sizeof bytes, at)) > 0) {
            text_add(&rest, bytes, (size_t)n);
            at += n;
        }
        close(fd);
        char *line = rest.data, *end = rest.data + rest.len, *newline;
        while (line && (newline = memchr(line, '\n', (size_t)(end - line)))) {
            *newline = '\0';
            if (regexec(&re, line, 0, NULL, 0) == 0) {
                puts(line);
                return true;
            }
            line = newline + 1;
        }
        if (line) {
            rest.len = (size_t)(end - line);
            memmove(rest.data, line, rest.len);
        }
    }
    return false;
}

static bool
wait_until(int64_t deadline, const char *command, const char *path, const char *wanted)
{
    static char *words, **argv;
    words = strdup(command);
    char *rest = words, *word;
    size_t n = 0;
    while ((word = strsep(&rest, " \t\n")))
        if (*word) {
            argv = grown(argv, (n + 2) * sizeof *argv);
            argv[n++] = word;
            argv[n] = NULL;
        }
    if (!argv)
        errx(WRONG, "no command to ask");
    for (; ms_left(deadline); pause_a_little()) {
        int status;
        char *answer = output_of(argv, false, &status);
        json_t *document = json_loads(answer, JSON_DECODE_ANY, NULL); /* NULL: not there yet */
        bool is = document && is_value(document, path, wanted);
        json_decref(document);
        free(answer);
        if (is)
            return true;
    }
    return false;
}

/* Runs a command again until its output has, or does not have, a line that matches. */
static bool
wait_until_prints(int64_t deadline, char *const *argv, const char *pattern, bool wanted,
                  bool must_succeed)
{
    regex_t re = compiled(pattern);
    for (; ms_left(deadline); pause_a_little()) {
        int status;
        char *printed = output_of(argv, true, &status);
        bool has = regexec(&re, printed, 0, NULL, 0) == 0;
        free(printed);
        if (has == wanted && (status == 0 || !must_succeed))
            return true;
    }
    return false;
}

static bool
print_matching(char *const *words)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0)
        if (matches(line, words, -1))
            fputs(line, stdout);
    return true;
}

static bool
print_value(const char *path)
{
    json_error_t why;
    const json_t *document = json_loadf(stdin, JSON_DECODE_ANY, &why);
    if (!document)
        errx(WRONG, "no JSON: %s", why.text);
    const json_t *value = value_at(document, path);
    if (!value)
        warnx("there is no '%s' in it", path);
    else
        puts(text_of(value));
    return value;
}

static bool
is_answered(const char *what, char **args, int n)
{
    if (strcmp(what, "list") == 0) {
        pid_t *pids = marked();
        for (size_t i = 0; pids[i]; i++)
            printf("%d ", pids[i]);
        putchar('\n');
        free(pids);
        return true;
    }
    if (strcmp(what, "json") == 0 && n == 1)
        return print_value(args[0]);
    if (strcmp(what, "match") == 0)
        return print_matching(args);
    if (n < 1)
        errx(WRONG, "how long?");
    int64_t deadline = now_ms() + (int64_t)(strtod(args[0], NULL) * 1000);
    args++, n--;
    if (strcmp(what, "pid") == 0) {
        for (int i = 0; i < n; i++)
            if (!wait_for_pid((pid_t)strtol(args[i], NULL, 10), deadline))
                return false;
        return true;
    }
    if (strcmp(what, "gone") == 0 && n == 0)
        return wait_until_gone(deadline);
    if (strcmp(what, "event") == 0)
        return wait_for_event(deadline, args);
    if (strcmp(what, "output") == 0 && n == 2)
        return wait_for_output(deadline, args[0], args[1]);
    if (strcmp(what, "until") == 0 && n == 3)
        return wait_until(deadline, args[0], args[1], args[2]);
    if (strcmp(what, "prints") == 0 && n == 2) {
        char *argv[] = {"sh", "-c", args[0], NULL};
        return wait_until_prints(deadline, argv, args[1], true, false);
    }
    if ((strcmp(what, "screen") == 0 || strcmp(what, "noscreen") == 0) && n == 2) {
        char *argv[] = {"tmux", "-S", args[0], "capture-pane", "-p", NULL};
        return wait_until_prints(deadline, argv, args[1], what[0] == 's', true);
    }
    errx(WRONG, "'%s' with %d words: see the head of await.c", what, n);
}

int
main(int argc, char **argv)
{
    if (argc < 2)
        errx(WRONG, "for what? See the head of await.c");
    setlocale(LC_CTYPE, ""); /* screens have wide characters */
    return is_answered(argv[1], argv + 2, argc - 2) ? 0 : 1;
}
