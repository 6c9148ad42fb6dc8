"""Lets system calls of a program and all its descendants fail, from outside and when it is time:
a seccomp filter hands the calls that are named to a listener, which answers each with an error or
lets it go on. It reaches programs that are linked statically. x86_64 Linux 5.19 or later.
Standard library only.

The filter is installed by this file run as a program, which then executes the command:

    faultcalls.py FLAG NUMBER,NUMBER... COMMAND...

It waits for a byte in the file FLAG, as the listener's descriptor must be fetched before it is
closed by exec; and it waits without a system call, as any of those may be held up."""
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import struct
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NR_SECCOMP, NR_PIDFD_OPEN, NR_PIDFD_GETFD = 317, 434, 438
SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
RET_ALLOW, RET_USER_NOTIF = 0x7fff0000, 0x7fc00000
PR_SET_NO_NEW_PRIVS = 38
ARCH_X86_64 = 0xC000003E
NOTIF = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
RECV = 3 << 30 | NOTIF.size << 16 | ord("!") << 8
SEND = 3 << 30 | ANSWER.size << 16 | ord("!") << 8 | 1
GO_ON = 1


def is_possible():
    return platform.machine() == "x86_64" and sys.platform == "linux"


def system_call(number, *args):
    rc = LIBC.syscall(number, *args)
    if rc < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return rc


# --- in front of the command --------------------------------------------------------------------


class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def install(numbers):
    def step(code, jt, jf, k):
        return struct.pack("=HBBI", code, jt, jf, k)

    load, equal, answer = 0x20, 0x15, 0x06
    code = step(load, 0, 0, 4) + step(equal, 1, 0, ARCH_X86_64) + step(answer, 0, 0, RET_ALLOW)
    code += step(load, 0, 0, 0)
    for number in numbers:
        code += step(equal, 0, 1, number) + step(answer, 0, 0, RET_USER_NOTIF)
    code += step(answer, 0, 0, RET_ALLOW)
    kept = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(kept))
    if os.geteuid() != 0:
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    system_call(NR_SECCOMP, SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, ctypes.byref(program))


def launch(flag, numbers, command):
    with open(flag, "r+b") as f:
        fetched = mmap.mmap(f.fileno(), 1)
    install([int(n) for n in numbers.split(",")])
    while fetched[0] == 0:
        pass
    os.execv(command[0], command)


# --- beside it ------------------------------------------------------------------------------------


class Listener:
    """Answer the numbered calls until no process is left that could make one. judge(pid,
    number, args) is asked about each: the number of an error, or 0."""

    def __init__(self, folder, numbers, judge):
        self.flag = os.path.join(folder, "fetched")
        self.numbers, self.judge = ",".join(map(str, numbers)), judge
        self.thread = None

    def before(self):
        """The words to put in front of a command about to be started."""
        with open(self.flag, "wb") as f:
            f.write(b"\0")
        return [sys.executable, "-I", "-S", os.path.abspath(__file__), self.flag, self.numbers]

    def attach(self, pid):
        """Called once the wrapper has been started, as process pid."""
        fd = self.fetch(pid)
        with open(self.flag, "r+b") as f:
            f.write(b"\1")
        self.thread = threading.Thread(target=self.serve, args=(fd,), daemon=True)
        self.thread.start()

    @staticmethod
    def fetch(pid):
        pidfd = system_call(NR_PIDFD_OPEN, pid, 0)
        folder = f"/proc/{pid}/fd"
        try:
            while True:
                for name in os.listdir(folder):
                    try:
                        if "seccomp notify" in os.readlink(os.path.join(folder, name)):
                            return system_call(NR_PIDFD_GETFD, pidfd, int(name), 0)
                    except FileNotFoundError:
                        pass
                time.sleep(0.001)
        finally:
            os.close(pidfd)

    def serve(self, fd):
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            events = poll.poll()[0][1]
            if not events & select.POLLIN:
                break
            room = bytearray(NOTIF.size)
            try:
                fcntl.ioctl(fd, RECV, room)
            except OSError as e:
                if e.errno in (errno.ENOENT, errno.EINTR):
                    continue  # the process that made the call is gone
                raise
            what = NOTIF.unpack(room)
            error = self.judge(what[1], what[3], what[6:])
            try:
                fcntl.ioctl(fd, SEND, ANSWER.pack(what[0], 0, -error, 0 if error else GO_ON))
            except OSError as e:
                if e.errno != errno.ENOENT:
                    raise
        os.close(fd)


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2], sys.argv[3:])
