/* `berth daemon logs` and `berth daemon log-level`: the daemon's own log. It is read with the
 * calling user's rights, so only users who may read the file see the log of the machine's
 * daemon. Called by daemon_verb.c. */
#include "cli/verbs/daemon_logs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/ask/text_follow.h"
#include "cli/common/cli.h"
#include "wire/client.h"
#include "wire/places.h"

/* The path of the log of a daemon that answers, or of the last one here; NULL after an error
 * was printed. The caller frees. */
static char *
find_log(struct cli *cli, int *status)
{
    struct err e = {0};
    auto_json json_t *answer = NULL;
    auto_client struct client *c = connect_running(cli, &e);
    struct places places;

    *status = 1;
    if (c && client_call(c, "status", NULL, &answer, &e) == 0) {
        const json_t *d = json_object_get(answer, "daemon");
        const char *path = answer_str(d, "log");
        if (path[0])
            return xstrdup(path);
        if (strcmp(answer_str(d, "log_to"), "journal") == 0)
            cli_say("the daemon logs to the journal: journalctl %s-u berthd -f",
                    strcmp(answer_str(d, "mode"), "user") == 0 ? "--user " : "");
        else
            cli_say("the daemon runs in the foreground and logs to its standard error");
        return NULL;
    }
    if (places_find(cli->dir, &places, &e) < 0) {
        *status = cli_fail(&e);
        return NULL;
    }
    char *path = TAKE(places.log);
    places_free(&places);
    return path;
}

/* Follows the log until the reader closes. A rotated log is printed to its end, then the new
 * one. */
static int
follow(struct textfile *f, int watch, struct err *e)
{
    struct pollfd p[2] = {{.fd = watch, .events = POLLIN}, {.fd = STDOUT_FILENO}};

    while (!f->broken) {
        textfile_watch(f, watch);
        bool replaced = textfile_is_replaced(f);
        f->is_final = replaced;
        if (textfile_copy(f, e) < 0)
            return -1;
        if (replaced) {
            textfile_close(f);
            f->at = 0;
            f->is_final = false;
        }
        if (f->fd < 0 && (textfile_open(f, 0, e) < 0 || textfile_copy(f, e) < 0))
            return -1;
        if (poll(p, 2, textfile_wait_ms(f)) < 0 && errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait");
        f->broken |= (p[1].revents & (POLLERR | POLLHUP)) != 0;
        textfile_drain(watch);
    }
    return 0;
}

int
daemon_logs(struct cli *cli, bool following, int64_t tail)
{
    struct err e = {0};
    int status, rc;
    auto_free char *path = find_log(cli, &status);
    auto_close int watch = -1;

    if (!path)
        return status;
    auto_textfile struct textfile f = TEXTFILE_INIT(path);
    if (following && (watch = textfile_notify(&f, &e)) < 0)
        return cli_fail(&e);
    if (textfile_open(&f, tail, &e) < 0)
        return cli_fail(&e);
    if (f.fd < 0 && !following) {
        cli_say("no log at %s: no daemon has run here", path);
        return 1;
    }
    rc = following ? follow(&f, watch, &e) : textfile_copy(&f, &e);
    return rc < 0 ? cli_fail(&e) : cli_output_status();
}

int
daemon_log_level(struct cli *cli, const char *level)
{
    struct err e = {0};
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    auto_client struct client *c = connect_daemon(cli, &e);
    json_t *params = level ? json_pack("{s:s}", "level", level) : json_object();

    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    if (!params)
        return cli_usage("that is not UTF-8");
    if (client_call(c, "log.level", params, &result, &e) < 0)
        return cli_fail(&e);
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        return cli_put_json(result);
    }
    if (level && strcmp(answer_str(result, "old"), answer_str(result, "new")) != 0)
        buf_addf(&out, "%s (was %s), until the daemon is restarted\n",
                 answer_str(result, "new"), answer_str(result, "old"));
    else
        buf_addf(&out, "%s\n", answer_str(result, "new"));
    return cli_put(&out);
}
