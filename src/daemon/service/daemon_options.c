/* berthd's options: see daemon_options.h and berthd(8). */
#include "daemon/service/daemon_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "spec/config.h"
#include "wire/places.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

static const char help[] =
    "Usage: berthd [options]\n"
    "The daemon of Berth, a GPU job scheduler for one machine. 'berth run' and\n"
    "'berth submit' start it when there is none.\n\n"
    "  --dir DIR          socket, state and logs in DIR (default: BERTH_DIR, or the user's)\n"
    "  --system           serve all users of the machine (as root)\n"
    "  --sim SPEC         simulated GPUs: 2, 4x80G, 2x24G,1x80G\n"
    "  --config FILE      settings, after /etc/berth/config.yaml and the user's\n"
    "  --set KEY=VALUE    one setting (berth config sample lists them)\n"
    "  --stay             do not exit when idle\n"
    "  --need-gpus        exit if no GPU can be read and no job is pending\n"
    "  --ready-fd N       write \"ready\" to descriptor N when listening; log to the file\n"
    "  --help, --version\n";

enum {
    OPT_DIR = 256,
    OPT_SYSTEM,
    OPT_SIM,
    OPT_CONFIG,
    OPT_SET,
    OPT_STAY,
    OPT_NEED_GPUS,
    OPT_READY,
    OPT_HELP,
    OPT_VERSION
};

static const struct option longs[] = {
    {"dir", required_argument, NULL, OPT_DIR},
    {"system", no_argument, NULL, OPT_SYSTEM},
    {"sim", required_argument, NULL, OPT_SIM},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"set", required_argument, NULL, OPT_SET},
    {"stay", no_argument, NULL, OPT_STAY},
    {"need-gpus", no_argument, NULL, OPT_NEED_GPUS},
    {"ready-fd", required_argument, NULL, OPT_READY},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int
take_option(int c, struct options *o, struct err *e)
{
    int64_t n;
    switch (c) {
    case OPT_DIR:
        o->dir = optarg;
        return 0;
    case OPT_SYSTEM:
        o->system = true;
        return 0;
    case OPT_SIM:
        o->sim = optarg;
        return 0;
    case OPT_CONFIG:
        o->config = optarg;
        return 0;
    case OPT_STAY:
        o->stay = true;
        return 0;
    case OPT_NEED_GPUS:
        o->need_gpus = true;
        return 0;
    case OPT_SET:
        if (o->n_sets == (int)(sizeof o->sets / sizeof o->sets[0]))
            return err_set(e, ERR_USAGE, "too many --set");
        o->sets[o->n_sets++] = optarg;
        return 0;
    case OPT_READY:
        if (parse_int(optarg, 3, 1023, &n, e) < 0)
            return err_prefix(e, "--ready-fd");
        o->ready_fd = (int)n;
        return 0;
    case OPT_HELP:
        fputs(help, stdout);
        return 1;
    case OPT_VERSION:
        puts("berthd " BERTH_VERSION);
        return 1;
    default:
        return err_set(e, ERR_USAGE, "unexpected argument %s; see berthd --help",
                       optind > 0 ? "on the command line" : "");
    }
}

int
daemon_options_parse(int argc, char **argv, struct options *out, struct err *e)
{
    *out = (struct options){.ready_fd = -1};
    opterr = 0;
    for (;;) {
        int at = optind > 0 ? optind : 1;
        int c = getopt_long(argc, argv, "", longs, NULL);
        if (c == -1)
            break;
        if (c == '?')
            return err_set(e, ERR_USAGE, "unknown option '%s', or missing value; see --help",
                           argv[at]);
        int rc = take_option(c, out, e);
        if (rc)
            return rc;
    }
    if (optind < argc)
        return err_set(e, ERR_USAGE, "unexpected argument '%s'; see --help", argv[optind]);
    return 0;
}

static int
read_file(const char *path, bool must_exist, struct config *c, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    if (!must_exist && access(path, F_OK) < 0)
        return 0;
    if (file_read(path, CONFIG_MAX_BYTES, &text, e) < 0)
        return -1;
    return config_read(c, path, buf_str(&text), text.len, NULL, e);
}

static char *
user_file(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        return xasprintf("%s/berth/config.yaml", xdg);
    return home && home[0] == '/' ? xasprintf("%s/.config/berth/config.yaml", home) : NULL;
}

static int
apply_sets(const struct options *o, struct config *out, struct err *e)
{
    for (int i = 0; i < o->n_sets; i++) {
        auto_free char *key = xstrdup(o->sets[i]);
        char *eq = strchr(key, '=');
        if (!eq)
            return err_set(e, ERR_USAGE, "--set needs KEY=VALUE, not '%s'", key);
        *eq = '\0';
        if (config_set(out, key, eq + 1, e) < 0)
            return err_prefix(e, "--set");
    }
    return 0;
}

int
daemon_options_read_config(const struct options *o, const struct places *p, struct config *out,
                           struct err *e)
{
    auto_free char *user = p->system ? NULL : user_file();
    auto_free char *instance = p->root ? xasprintf("%s/config.yaml", p->root) : NULL;
    config_init(out);
    if (read_file("/etc/berth/config.yaml", false, out, e) < 0 ||
        (user && read_file(user, false, out, e) < 0) ||
        (instance && read_file(instance, false, out, e) < 0) ||
        (o->config && read_file(o->config, true, out, e) < 0) || apply_sets(o, out, e) < 0)
        return -1;
    return 0;
}
