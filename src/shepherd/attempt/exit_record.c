/* Writes the exit record to disk, with a crash point at each step. Called by stop.c. The
 * record is first noted in the lock file; its own file follows only if no daemon sends
 * `recorded` soon. A rename is not followed by fsync here: normally the daemon commits the
 * outcome to its database first, and then removes the folder. */
#include "shepherd/attempt/exit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/exitrec.h"

int
record_note(int lock_fd, const struct exitrec *r)
{
    auto_buf struct buf text = BUF_INIT;
    buf_adds(&text, EXITREC_NOTE);
    exitrec_encode(r, NULL, &text);
    buf_addc(&text, '\n');
    int offset = exitrec_note_offset(lock_fd);
    if (offset < 0)
        return -1;
    crash_point("shepherd-before-note");
    /* The record is short, so it is complete or absent: the reader requires the final
     * newline. */
    return file_write_all_at(lock_fd, text.data, text.len, offset);
}

int
record_write(int dirfd, const struct exitrec *r, bool synced, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    exitrec_encode(r, NULL, &text);
    buf_addc(&text, '\n');
    auto_close int fd =
        openat(dirfd, "exit.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write the exit record");
    if (file_write_all(fd, text.data, text.len) < 0 || (synced && fsync(fd) < 0)) {
        int why = errno;
        (void)unlinkat(dirfd, "exit.tmp", 0);
        return err_errno(e, ERR_FAILED, why, "cannot write the exit record");
    }
    crash_point("shepherd-before-rename");
    if (renameat(dirfd, "exit.tmp", dirfd, "exit") < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot name the exit record");
    crash_point("shepherd-after-rename");
    return 0;
}

int
record_sync(int dirfd, struct err *e)
{
    auto_close int fd = openat(dirfd, "exit", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_close int dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || dir < 0 || fsync(fd) < 0 || fsync(dir) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the exit record durable");
    return 0;
}
