/* berthd's options: see daemon_options.h and berthd(8). */
#include "daemon/service/daemon_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/long_options.h"
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

static int
take_set(void *out, const char *value, struct err *e)
{
    struct options *o = out;

    if (o->n_sets == (int)(sizeof o->sets / sizeof o->sets[0]))
        return err_set(e, ERR_USAGE, "too many --set");
    o->sets[o->n_sets++] = value;
    return 0;
}

static const struct long_option table[] = {
    {"dir", LONG_OPTION_TEXT, offsetof(struct options, dir), NULL},
    {"system", LONG_OPTION_FLAG, offsetof(struct options, system), NULL},
    {"sim", LONG_OPTION_TEXT, offsetof(struct options, sim), NULL},
    {"config", LONG_OPTION_TEXT, offsetof(struct options, config), NULL},
    {"set", LONG_OPTION_TAKE, 0, take_set},
    {"stay", LONG_OPTION_FLAG, offsetof(struct options, stay), NULL},
    {"need-gpus", LONG_OPTION_FLAG, offsetof(struct options, need_gpus), NULL},
    {"ready-fd", LONG_OPTION_FD, offsetof(struct options, ready_fd), NULL},
    {NULL, 0, 0, NULL},
};

int
daemon_options_parse(int argc, char **argv, struct options *out, struct err *e)
{
    *out = (struct options){.ready_fd = -1};
    return long_options_read(argc, argv, table, help, "berthd", out, e);
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
