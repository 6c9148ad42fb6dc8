/* A Python package named gpusched for the jobs of a simulated run: its one module becomes
 * `berth compat gpusched.simjob`. It lies in front of PYTHONPATH, so that lines written for the
 * original run as they stand, whether that is installed or not. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"

static int
put(int dir, const char *name, const struct buf *text, struct err *e)
{
    return file_write_atomic_at(dir, name, text->data, text->len, 0644, false, e);
}

static int
write_package(const char *package, struct err *e)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_buf struct buf init = BUF_INIT, module = BUF_INIT;
    auto_close int dir = -1;

    if (!self)
        return err_errno(e, ERR_FAILED, errno, "cannot tell where this program lies");
    if (file_mkdirs(package, 0777, e) < 0)
        return -1;
    dir = open(package, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", package);
    buf_addf(&init, "__version__ = \"%s\"\n", GS_VERSION);
    buf_adds(&module, "# Written by berth: the pretend GPU program on its simulated cards.\n"
                      "import os\nimport sys\n\n\ndef main():\n    os.execv(");
    py_add_repr(&module, self);
    buf_adds(&module, ", [\"gpusched.simjob\"] + sys.argv[1:])\n\n\n"
                      "if __name__ == \"__main__\":\n    main()\n");
    return put(dir, "__init__.py", &init, e) || put(dir, "simjob.py", &module, e) ? -1 : 0;
}

int
gs_offer_module(const char *dir, struct err *e)
{
    auto_free char *package = xasprintf("%s/gpusched", dir);
    const char *old = getenv("PYTHONPATH");
    auto_free char *path = xasprintf("%s%s%s", dir, old && old[0] ? ":" : "", old ? old : "");

    if (write_package(package, e) < 0)
        return -1;
    setenv("PYTHONPATH", path, 1);
    return 0;
}
