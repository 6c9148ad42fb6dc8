#!/usr/bin/env python3
"""`denied.py CALL ERROR COMMAND...`: run the command with a system call (timerfd_create, ...)
that always fails with that error, for it and all its descendants. The kernel does so, by
seccomp, so it includes programs that are linked statically. Exits with 77 if it cannot be
done. Standard library only."""
import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {"timerfd_create": {"x86_64": 283, "aarch64": 85}}
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def main():
    machine = platform.machine()
    if machine not in ARCHES:
        sys.exit(77)
    number, error = CALLS[sys.argv[1]][machine], getattr(errno, sys.argv[2])

    def step(code, jt, jf, k):
        return struct.pack("=HBBI", code, jt, jf, k)

    load, equal, answer = 0x20, 0x15, 0x06
    code = (step(load, 0, 0, 4) + step(equal, 0, 3, ARCHES[machine]) + step(load, 0, 0, 0) +
            step(equal, 0, 1, number) + step(answer, 0, 0, RET_ERRNO | error) +
            step(answer, 0, 0, RET_ALLOW))
    kept = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 or \
            libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program)) < 0:
        sys.exit(77)
    os.execvp(sys.argv[3], sys.argv[3:])


main()
