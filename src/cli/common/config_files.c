/* Reads the usual settings files: see config_files.h. They are read with the user's rights,
 * not by the daemon. */
#include "cli/common/config_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "spec/config.h"

#define CONFIG_MAX_BYTES (1024 * 1024)
#define PLACES           2

static void
find_places(char **out)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    out[0] = xstrdup("/etc/berth/config.yaml");
    out[1] = xdg && xdg[0] == '/' ? xasprintf("%s/berth/config.yaml", xdg)
                                  : xasprintf("%s/.config/berth/config.yaml", home ? home : "");
}

int
config_files_read_one(struct config *c, const char *path)
{
    auto_buf struct buf text = BUF_INIT, all = BUF_INIT;
    struct err e;

    if (file_read(path, CONFIG_MAX_BYTES, &text, &e) < 0)
        return cli_fail(&e);
    if (config_read(c, path, buf_str(&text), text.len, &all, &e) == 0)
        return 0;
    (void)file_write_all(STDERR_FILENO, all.data, all.len);
    return err_exit_status(e.code);
}

int
config_files_read(struct config *c, bool say)
{
    char *places[PLACES];
    int status = 0;

    find_places(places);
    for (int i = 0; i < PLACES; i++) {
        if (access(places[i], F_OK) == 0) {
            int rc = config_files_read_one(c, places[i]);
            status = rc ? rc : status;
            if (rc == 0 && say)
                cli_say("%s is valid", places[i]);
        } else if (say) {
            cli_say("%s does not exist", places[i]);
        }
        free(places[i]);
    }
    return status;
}
