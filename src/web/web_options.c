/* berth-web's options: see web_options.h. */
#include "web/web_options.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/long_options.h"
#include "base/parse.h"

static const char help[] =
    "Usage: berth-web [options]\n"
    "Show GPUs, queue and history in browsers: pages, JSON and /metrics.\n"
    "Read only.\n\n"
    "  --listen ADDR:PORT   address (default: 127.0.0.1:7461); port 0: any free port\n"
    "  --listen unix:PATH   UNIX socket, for a proxy and users who may use the file\n"
    "  --token-file FILE    visitors must enter the first line of FILE; required beyond\n"
    "                       loopback\n"
    "  --allow-local        every user of this machine may connect, not only you and root\n"
    "  --host NAME          host name that browsers may use for this server (repeatable)\n"
    "  --dir DIR            use the daemon of DIR (default: BERTH_DIR, yours, the system's)\n"
    "  --socket PATH        use the daemon at PATH (default: BERTH_SOCKET)\n"
    "  --ready-fd N         write the address to descriptor N when listening\n"
    "  --help, --version\n";

/* --- listen --- */

static bool
take_v4(const char *name, uint16_t port, struct options *o)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&o->address;
    const char *address = strcmp(name, "localhost") == 0 ? "127.0.0.1" : name;

    if (inet_pton(AF_INET, address, &in->sin_addr) != 1)
        return false;
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    o->address_len = sizeof *in;
    o->is_loopback = ntohl(in->sin_addr.s_addr) >> 24 == 127;
    return true;
}

static bool
take_v6(const char *name, uint16_t port, struct options *o)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&o->address;

    if (inet_pton(AF_INET6, name, &in6->sin6_addr) != 1)
        return false;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    o->address_len = sizeof *in6;
    o->is_loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    return true;
}

static int
refuse_listen(const char *text, struct err *e)
{
    return err_set(
        e, ERR_USAGE,
        "--listen '%s' is not an address; write 127.0.0.1:%d, [::1]:%d, 0.0.0.0:%d or "
        "unix:PATH",
        text, OPTIONS_PORT, OPTIONS_PORT, OPTIONS_PORT);
}

int
web_options_parse_listen(const char *text, struct options *out, struct err *e)
{
    auto_free char *name = xstrdup(text);
    char *colon = strrchr(name, ':');
    size_t n;
    int64_t port;

    memset(&out->address, 0, sizeof out->address);
    out->unix_path = NULL;
    if (strncmp(text, "unix:", 5) == 0) {
        out->unix_path = text + 5;
        return text[5] == '/'
                   ? 0
                   : err_set(e, ERR_USAGE, "--listen unix:PATH needs an absolute path");
    }
    if (!colon || parse_int(colon + 1, 0, 65535, &port, NULL) < 0)
        return refuse_listen(text, e);
    *colon = '\0';
    n = strlen(name);
    if (n > 2 && name[0] == '[' && name[n - 1] == ']') {
        name[n - 1] = '\0';
        return take_v6(name + 1, (uint16_t)port, out) ? 0 : refuse_listen(text, e);
    }
    return take_v4(name, (uint16_t)port, out) ? 0 : refuse_listen(text, e);
}

/* --- options --- */

static int
take_listen(void *out, const char *value, struct err *e)
{
    return web_options_parse_listen(value, out, e);
}

static int
take_host(void *out, const char *name, struct err *e)
{
    struct options *o = out;
    int n = 0;

    while (o->names[n])
        n++;
    if (n == OPTIONS_NAMES_MAX)
        return err_set(e, ERR_USAGE, "at most %d --host", OPTIONS_NAMES_MAX);
    if (!name[0] || strpbrk(name, "/: "))
        return err_set(e, ERR_USAGE, "--host '%s': not a host name such as gpu.example.org",
                       name);
    o->names[n] = name;
    return 0;
}

static const struct long_option table[] = {
    {"listen", LONG_OPTION_TAKE, 0, take_listen},
    {"token-file", LONG_OPTION_TEXT, offsetof(struct options, token_file), NULL},
    {"allow-local", LONG_OPTION_FLAG, offsetof(struct options, allow_local), NULL},
    {"host", LONG_OPTION_TAKE, 0, take_host},
    {"dir", LONG_OPTION_TEXT, offsetof(struct options, dir), NULL},
    {"socket", LONG_OPTION_TEXT, offsetof(struct options, socket), NULL},
    {"ready-fd", LONG_OPTION_FD, offsetof(struct options, ready_fd), NULL},
    {NULL, 0, 0, NULL},
};

/* Checks the options against each other. */
static int
check(const struct options *o, struct err *e)
{
    if (!o->unix_path && !o->is_loopback && !o->token_file)
        return err_set(e, ERR_USAGE,
                       "other machines may connect only with a token: --token-file FILE "
                       "(openssl rand -hex 24 >FILE; chmod 600 FILE)");
    if (o->allow_local && geteuid() == 0)
        return err_set(e, ERR_USAGE,
                       "--allow-local as root would show all users what only admins may see; "
                       "run berth-web as a separate user, as berth-web.service does");
    return 0;
}

int
web_options_parse(int argc, char **argv, struct options *out, struct err *e)
{
    *out = (struct options){.ready_fd = -1};
    take_v4("127.0.0.1", OPTIONS_PORT, out);
    int rc = long_options_read(argc, argv, table, help, "berth-web", out, e);
    if (rc != 0)
        return rc;
    const char *named = getenv("BERTH_SOCKET");
    if (!out->socket && !out->dir && named && named[0])
        out->socket = named;
    return check(out, e);
}
