/* berth-init: the first process in a job's container, and the parent of its command. Linked
 * statically, because the image has its own libraries, or none. container.c passes it the
 * supervisor's memory file as descriptor 3 (container_mark.h), which holds the command's
 * variables and receives its progress. So the supervisor knows whether the command began and
 * how it ended, whatever podman's exit status is.
 *
 * For the command it does what any init does: it forwards signals and reaps. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shepherd/begin/container_mark.h"

#define EXIT_NO_EXEC  126
#define EXIT_NO_FILE  127
#define SIGNAL_STATUS 128

static int mark_fd = CONTAINER_FD;

static int
mark(const char *text)
{
    size_t n = strlen(text), done = 0;
    if (lseek(mark_fd, 0, SEEK_END) < 0)
        return -1;
    while (done < n) {
        ssize_t part = write(mark_fd, text + done, n - done);
        if (part < 0 && errno != EINTR)
            return -1;
        done += part > 0 ? (size_t)part : 0;
    }
    return 0;
}

static void
say(const char *text)
{
    if (mark(text) < 0)
        fprintf(stderr, "berth-init: cannot tell the supervisor: %s\n", strerror(errno));
}

/* The command has not begun, and that is not its fault. */
static _Noreturn void
give_up(const char *what, int why)
{
    char text[32];
    snprintf(text, sizeof text, CONTAINER_TROUBLE " %d\n", why);
    say(text);
    fprintf(stderr, "berth-init: %s: %s\n", what, strerror(why));
    _exit(EXIT_NO_EXEC);
}

/* Sets the variables: those given to the job override the image's, those from the submitter's
 * shell do not. Returns the script, or NULL. */
static const char *
take_variables(void)
{
    const char *script = NULL;
    struct stat st;
    if (fstat(CONTAINER_FD, &st) < 0)
        give_up("cannot read the job's environment", errno);
    if (st.st_size == 0)
        return NULL;
    size_t n = (size_t)st.st_size;
    char *text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, CONTAINER_FD, 0);
    if (text == MAP_FAILED)
        give_up("cannot read the job's environment", errno);
    for (char *at = text; at < text + n && *at; at += strlen(at) + 1) {
        char *value = strchr(at, '=');
        if (*at == CONTAINER_SCRIPT) {
            script = at + 1;
        } else if (value) {
            *value = '\0';
            if (setenv(at + 1, value + 1, *at == CONTAINER_OWN) < 0 && errno == ENOMEM)
                give_up("cannot set the job's environment", errno);
            *value = '=';
        }
    }
    return script;
}

/* Replaces the supervisor's file by the script, if there is one, as the command's
 * descriptor. */
static int
give_script(const char *script)
{
    size_t n = script ? strlen(script) : 0;
    int kept = fcntl(CONTAINER_FD, F_DUPFD_CLOEXEC, CONTAINER_FD + 1);
    if (kept < 0)
        return -1;
    mark_fd = kept;
    (void)close(CONTAINER_FD);
    if (!script)
        return 0;
    int fd = memfd_create("command", 0);
    if (fd < 0 || write(fd, script, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return fd == CONTAINER_FD || dup2(fd, CONTAINER_FD) == CONTAINER_FD ? 0 : -1;
}

/* On a terminal, makes the command and not this process the foreground process group. */
static void
come_to_front(void)
{
    setpgid(0, 0);
    if (isatty(STDIN_FILENO))
        (void)tcsetpgrp(STDIN_FILENO, getpid());
}

static _Noreturn void
become_command(char **argv, const char *script, const sigset_t *old)
{
    char text[32];
    come_to_front(); /* while TTOU is blocked */
    sigprocmask(SIG_SETMASK, old, NULL);
    if (give_script(script) < 0)
        give_up("cannot hand over the command", errno);
    if (mark(CONTAINER_BEGUN "\n") < 0) /* without the mark it would run again */
        give_up("cannot tell the supervisor", errno);
    execvp(argv[0], argv);
    int why = errno;
    snprintf(text, sizeof text, CONTAINER_NO_EXEC " %d\n", why);
    say(text);
    _exit(why == ENOENT ? EXIT_NO_FILE : EXIT_NO_EXEC);
}

/* Reaps all ended children; true if the command was one of them. */
static int
reap(pid_t command, int *status)
{
    int one, found = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid != command)
            continue;
        *status = one;
        found = 1;
    }
    return found;
}

static int
wait_for(pid_t command, const sigset_t *all)
{
    int status = 0, sig;
    for (;;) {
        sig = sigwaitinfo(all, NULL);
        if (sig == SIGCHLD && reap(command, &status))
            return status;
        if (sig > 0 && sig != SIGCHLD)
            (void)kill(command, sig);
    }
}

static int
say_end(int status)
{
    char text[32];
    int code = WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
    snprintf(text, sizeof text, "%s %d\n",
             WIFSIGNALED(status) ? CONTAINER_SIGNAL : CONTAINER_EXIT,
             WIFSIGNALED(status) ? WTERMSIG(status) : code);
    say(text);
    return code;
}

int
main(int argc, char **argv)
{
    sigset_t all, old;
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    if (argc <= first) {
        fprintf(stderr, "berth-init: runs the command of a job in its container; it is not "
                        "for people\n");
        return 2;
    }
    const char *script = take_variables();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t command = fork();
    if (command == 0)
        become_command(argv + first, script, &old);
    if (command < 0)
        give_up("cannot start a process", errno);
    return say_end(wait_for(command, &all));
}
