/* Pseudo-terminals through system calls: the slave is opened through the master's descriptor,
 * not by name, which would lead elsewhere in another mount namespace. console.c calls this.
 * The child itself takes the terminal as its controlling terminal, as its last step. */
#include "shepherd/talk/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define ROWS_DEFAULT    24
#define COLUMNS_DEFAULT 80
#define TTY_MODE        0620 /* as grantpt: others write only through setgid programs */

/* Sets the size, and UTF-8 input, so that erasing a character does not leave half of one. */
static void
prepare(int slave, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows ? rows : ROWS_DEFAULT,
                           .ws_col = columns ? columns : COLUMNS_DEFAULT};
    struct termios t;
    (void)ioctl(slave, TIOCSWINSZ, &size);
    if (tcgetattr(slave, &t) == 0) {
        t.c_iflag |= IUTF8;
        (void)tcsetattr(slave, TCSANOW, &t);
    }
}

int
pty_open(uint16_t rows, uint16_t columns, int64_t owner, int *master, int *slave, struct err *e)
{
    int locked = 0;
    auto_close int m = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (m < 0 || ioctl(m, TIOCSPTLCK, &locked) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a terminal");
    auto_close int s = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the terminal");
    if (owner >= 0 && (fchown(s, (uid_t)owner, (gid_t)-1) < 0 || fchmod(s, TTY_MODE) < 0))
        return err_errno(e, ERR_FAILED, errno, "cannot hand the terminal over");
    prepare(s, rows, columns);
    *master = TAKE_FD(m);
    *slave = TAKE_FD(s);
    return 0;
}

void
pty_resize(int master, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    if (rows && columns)
        (void)ioctl(master, TIOCSWINSZ, &size);
}

char
pty_eof_byte(int master)
{
    struct termios t;
    if (tcgetattr(master, &t) == 0 && t.c_cc[VEOF] != _POSIX_VDISABLE)
        return (char)t.c_cc[VEOF];
    return '\004';
}
