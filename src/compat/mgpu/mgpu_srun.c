/* mgpu_srun: runs a command on GPUs given by number. In the background unless --interactive is
 * given, as the original documents; then the output appears here, and the exit code is ours.
 * Ctrl-C detaches from the job; a second one within two seconds cancels it. Options end at
 * `--`; the words after it are passed to the command unchanged. */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/common/quote.h"
#include "compat/compat.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pytext.h"
#include "sys/signals.h"
#include "wire/client.h"
#include "wire/frame.h"

#define NAME     "mgpu_srun"
#define TWICE_US 2000000

static const char usage[] =
    "Usage: mgpu_srun --gpu-ids <id,id,...> [--mem <MB>] [--time-limit <sec>] [--priority <N>] "
    "[--env-setup-cmd <cmd>] [--interactive|--background] -- <command>\n";

/* --- the command line --- */

enum { OPT_IDS, OPT_MEM, OPT_LIMIT, OPT_PRIORITY, OPT_SETUP, OPT_VALUES };

static const char *const names[OPT_VALUES] = {"--gpu-ids", "--mem", "--time-limit",
                                              "--priority", "--env-setup-cmd"};

struct srun {
    const char *value[OPT_VALUES]; /* NULL: not given */
    bool interactive;
    int64_t mem, limit, priority;
    char *command; /* owned */
    char id[64];
};

/* Index of the option, or -1; *value: the text after =, or NULL. */
static int
find_option(const char *word, const char **value)
{
    size_t n = strcspn(word, "=");

    *value = word[n] ? word + n + 1 : NULL;
    for (int i = 0; i < OPT_VALUES; i++) {
        if (strlen(names[i]) == n && memcmp(names[i], word, n) == 0)
            return i;
    }
    return -1;
}

/* Quote a word that is not UTF-8, which JSON cannot hold, in bash's $'...' form. */
static void
quote_bytes(struct buf *out, const char *word)
{
    buf_adds(out, "$'");
    for (const char *p = word; *p; p++)
        buf_addf(out, "\\%03o", (unsigned char)*p);
    buf_addc(out, '\'');
}

/* A single word is shell text, passed unchanged; several are a program and its arguments. */
static char *
command_of(int argc, char **argv)
{
    auto_buf struct buf out = BUF_INIT;

    if (argc == 1)
        return xstrdup(argv[0]);
    for (int i = 0; i < argc; i++) {
        if (i)
            buf_addc(&out, ' ');
        if (text_is_utf8(argv[i], strlen(argv[i]), NULL))
            quote_add(&out, argv[i]);
        else
            quote_bytes(&out, argv[i]);
    }
    return buf_take(&out);
}

/* As in the original, unknown words are ignored, and of duplicate options the first counts.
 * False: print the usage. */
static bool
read_words(int argc, char **argv, struct srun *s)
{
    bool interactive = false, background = false;
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value;
        int option = find_option(argv[i], &value);

        interactive |= strcmp(argv[i], "--interactive") == 0;
        background |= strcmp(argv[i], "--background") == 0;
        if (option < 0)
            continue;
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!s->value[option])
            s->value[option] = value;
    }
    s->interactive = interactive && !background;
    if (i + 1 >= argc || !s->value[OPT_IDS])
        return false;
    s->command = command_of(argc - i - 1, argv + i + 1);
    return true;
}

static int
read_number(const struct srun *s, int option, int64_t *out)
{
    if (!s->value[option] || py_int(s->value[option], out))
        return 0;
    return compat_fail(1, NAME, "%s takes a whole number, not '%s'", names[option],
                       s->value[option]);
}

/* --- the request --- */

static json_t *
ids_of(const char *text)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *piece;
    json_t *ids = json_array();

    while ((piece = strsep(&rest, ",")))
        json_array_append_new(ids, json_string(piece));
    return ids;
}

static json_t *
request_of(const struct srun *s)
{
    const struct passwd *pw = getpwuid(geteuid());
    json_t *ids = ids_of(s->value[OPT_IDS]);
    json_t *r = json_pack("{s:s, s:s, s:i, s:o, s:s, s:I, s:b}", "cmd", "submit", "user",
                          pw ? pw->pw_name : "", "gpus", (int)json_array_size(ids), "gpu_ids",
                          ids, "cmdline", s->command, "priority", (json_int_t)s->priority,
                          "interactive", s->interactive);

    if (!r)
        return NULL;
    if (s->value[OPT_MEM])
        json_object_set_new(r, "mem", json_integer(s->mem));
    if (s->value[OPT_LIMIT])
        json_object_set_new(r, "time_limit", json_integer(s->limit));
    if (s->value[OPT_SETUP] &&
        json_object_set_new(r, "env_setup_cmd", json_string(s->value[OPT_SETUP])) < 0) {
        json_decref(r);
        return NULL;
    }
    return r;
}

/* 0 or the exit status. */
static int
on_submitted(struct srun *s, const json_t *reply)
{
    const char *id = answer_str(reply, "job_id");

    if (strcmp(answer_str(reply, "status"), "ok") != 0) {
        (void)compat_say("Submit failed: %s (ID: %s)", answer_str(reply, "msg"),
                         id[0] ? id : "None");
        return 1;
    }
    snprintf(s->id, sizeof s->id, "%s", id);
    if (answer_str(reply, "msg")[0]) {
        (void)compat_fail(1, NAME, "job %s: %s", id, answer_str(reply, "msg"));
        s->priority = answer_int(reply, "priority", s->priority);
    }
    return compat_say("Job submitted. ID: %s (priority=%lld)", s->id, (long long)s->priority);
}

/* --- interactive --- */

/* Output bytes arrive as characters U+0000 to U+00FF. */
static int
put_output(const json_t *frame)
{
    const json_t *data = json_object_get(frame, "data");
    const char *text = json_string_value(data);
    size_t n = json_string_length(data);
    auto_buf struct buf out = BUF_INIT;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 0xc0 && i + 1 < n)
            c = (unsigned char)(c << 6 | ((unsigned char)text[++i] & 0x3f));
        buf_addc(&out, (char)c);
    }
    return cli_put(&out);
}

static int
put_completion(const struct srun *s, const json_t *frame)
{
    int code = (int)answer_int(frame, "exit_code", 1);
    const char *why = answer_str(frame, "text");

    (void)compat_say("\nJob %s completed with exit code %d", s->id, code);
    if (why[0])
        (void)compat_fail(1, NAME, "job %s: %s", s->id, why);
    return code;
}

static void
cancel(const struct srun *s)
{
    auto_json json_t *reply = NULL;

    (void)compat_say("User interrupted. Canceling job...");
    reply = mgpu_ask_once(NAME, json_pack("{s:s, s:s}", "cmd", "cancel", "job_id", s->id));
    if (strcmp(answer_str(reply, "status"), "ok") == 0)
        (void)compat_say("Job %s canceled successfully.", s->id);
    else
        (void)compat_say("Failed to cancel job %s", s->id);
}

/* Leave the job running unless Ctrl-C is pressed again. */
static int
detach(const struct srun *s, int signals, int sig)
{
    struct pollfd p = {.fd = signals, .events = POLLIN};
    int64_t until = clock_boot_us() + TWICE_US;
    int64_t left;
    struct signalfd_siginfo info;

    if (sig != SIGINT)
        return 128 + sig;
    (void)compat_say(
        "User interrupted. Job %s goes on; Ctrl-C again cancels it. Later: mgpu_cancel "
        "%s",
        s->id, s->id);
    while ((left = until - clock_boot_us()) > 0) {
        if (poll(&p, 1, (int)((left + 999) / 1000)) <= 0 ||
            read(signals, &info, sizeof info) != (ssize_t)sizeof info)
            continue;
        if (info.ssi_signo == SIGINT)
            cancel(s);
        break; /* closing the terminal does not cancel the job */
    }
    return 128 + sig;
}

/* Handle the complete frames. -1: continue; else the exit status. */
static int
take_frames(const struct srun *s, struct frame *in)
{
    json_t *frame;
    int status = -1;

    while (status < 0 && (frame = mgpu_next(in))) {
        const char *type = answer_str(frame, "type");

        if (strcmp(type, "output") == 0 && put_output(frame) != 0)
            status = 1;
        else if (strcmp(type, "completion") == 0)
            status = put_completion(s, frame);
        json_decref(frame);
    }
    return status;
}

static int
follow(const struct srun *s, int fd, int signals, struct frame *in)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct signalfd_siginfo info;

    if (compat_say("Waiting for job to start...") != 0)
        return 1;
    for (;;) {
        int status = take_frames(s, in);

        if (status >= 0)
            return status;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            err_abort("poll: %s", strerror(errno));
        if (p[1].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info)
            return detach(s, signals, (int)info.ssi_signo);
        if (p[0].revents && !mgpu_read(fd, in))
            return compat_fail(1, NAME, "the server has gone; job %s may go on: see mgpu_queue",
                               s->id);
    }
}

/* --- main --- */

static int
submit(struct srun *s)
{
    json_t *request = request_of(s);
    auto_close int fd = -1, signals = -1;
    auto_json json_t *reply = NULL;
    struct frame in;
    int status = 1;

    if (!request)
        return compat_fail(1, NAME, "what is to run is no UTF-8 text, and cannot be sent");
    fd = mgpu_connect(NAME);
    if (fd < 0) {
        json_decref(request);
        return 1;
    }
    /* From here on a job may exist, and Ctrl-C must not leave before its id is printed. */
    if (s->interactive)
        signals = signals_to_fd((const int[]){SIGINT, SIGTERM, SIGHUP, 0}, NULL);
    frame_init(&in, FRAME_MAX_CLIENT);
    reply = mgpu_ask(NAME, fd, request, &in);
    if (reply && (status = on_submitted(s, reply)) == 0)
        status = s->interactive ? follow(s, fd, signals, &in)
                                : compat_say("Job queued. Use mgpu_queue to check status.");
    frame_free(&in);
    return status;
}

int
compat_mgpu_srun(int argc, char **argv)
{
    struct srun s = {0};
    int status = 1;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cli_write(usage, sizeof usage - 1);
    if (!read_words(argc, argv, &s))
        (void)cli_write(usage, sizeof usage - 1);
    else if (read_number(&s, OPT_MEM, &s.mem) == 0 &&
             read_number(&s, OPT_LIMIT, &s.limit) == 0 &&
             read_number(&s, OPT_PRIORITY, &s.priority) == 0)
        status = submit(&s);
    free(s.command);
    return status;
}
