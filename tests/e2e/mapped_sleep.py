#!/usr/bin/env python3
"""A process like one in a container without root: in a user namespace that the user UID has made,
as an id that is mapped to one of nobody's. Writes its pid into FILE once it sleeps, until it is killed.

    mapped_sleep.py UID FILE         by root
"""

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
NOBODYS = 1500000000
uid, path = int(sys.argv[1]), sys.argv[2]
made, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    os.write(made[1], b".")
    os.read(mapped[0], 1)
    os.setresuid(1, 1, 1)
    # Executed anew, so that root may inspect it and its variables can be read.
    os.execvp("sleep", ["sleep", "1000"])
os.read(made[0], 1)
with open(f"/proc/{child}/uid_map", "w") as f:
    f.write(f"0 {uid} 1\n1 {NOBODYS} 1\n")
os.write(mapped[1], b".")
os.close(made[1])
while open(f"/proc/{child}/comm").read() != "sleep\n":
    pass
with open(path + ".new", "w") as f:
    f.write(str(child))
os.rename(path + ".new", path)
os.waitpid(child, 0)
