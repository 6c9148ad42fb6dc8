#!/usr/bin/env python3
"""A disk with a volatile write cache, as a file: what was not flushed when the power goes is lost,
in part or all of it.

    lossy_disk.py FOLDER IMAGE SIZE_MIB [lie]

mounts a file system (FUSE) on FOLDER whose one file, `disk`, is for a loop device or for qemu. What
is written stays in memory until the file is fsynced, which a loop device does for each flush and
each forced write of the file system on it; only then it goes to IMAGE. Commands come on standard
input, a line each, and are answered with a line:

    cut MODE SEED    the power goes: of the blocks in the cache, IMAGE gets none (`none`), all (`all`), any
                     of them (`blocks`) or any sectors of them (`sectors`), as a real disk may have
                     written them in any order. From then on each write and flush fails.
    quit             end

With `lie` a flush is answered and does nothing, as some disks do: a campaign has to notice.

Standard library only; for root.
"""
import ctypes
import errno
import os
import random
import select
import struct
import sys

BLOCK, SECTOR = 4096, 512
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 1, 2, 3, 4, 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT, DESTROY, BATCH_FORGET = 25, 26, 27, 28, 29, 34, 36, 38, 42
ROOT, DISK = 1, 2
MAX_WRITE = 128 << 10
FOREVER = 1 << 30


class Cache:
    """The image, and the blocks over it that have not been flushed yet."""

    def __init__(self, path, size, lies):
        self.lies = lies
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.size = size
        os.ftruncate(self.fd, size)
        self.dirty = {}
        self.is_cut = False

    def block(self, number):
        return self.dirty.get(number) or os.pread(self.fd, BLOCK, number * BLOCK)

    def read(self, offset, size):
        end = min(offset + size, self.size)
        data = b"".join(self.block(n) for n in range(offset // BLOCK, -(-end // BLOCK)))
        return data[offset % BLOCK:offset % BLOCK + end - offset]

    def write(self, offset, data):
        if self.is_cut:
            raise OSError(errno.EIO, "no power")
        at = 0
        while at < len(data):
            number, within = divmod(offset + at, BLOCK)
            part = data[at:at + BLOCK - within]
            old = b"" if len(part) == BLOCK else self.block(number)
            self.dirty[number] = old[:within] + part + old[within + len(part):]
            at += len(part)

    def flush(self):
        if self.is_cut:
            raise OSError(errno.EIO, "no power")
        if self.lies:
            return
        for number, data in self.dirty.items():
            os.pwrite(self.fd, data, number * BLOCK)
        self.dirty.clear()

    def cut(self, mode, seed):
        """Number of blocks in the cache, and of their sectors that survived."""
        lots = random.Random(seed)
        survived = 0
        for number, data in self.dirty.items():
            whole = {"none": False, "all": True}.get(mode, lots.random() < 0.5)
            for at in range(0, BLOCK, SECTOR):
                if lots.random() < 0.5 if mode == "sectors" else whole:
                    os.pwrite(self.fd, data[at:at + SECTOR], number * BLOCK + at)
                    survived += 1
        cached, self.is_cut = len(self.dirty), True
        return cached, survived


class Fuse:
    """Just enough of the FUSE protocol for one file."""

    def __init__(self, folder, cache):
        self.cache = cache
        self.folder = folder
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"lossy", folder.encode(), b"fuse", 6, options.encode()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"mount: {os.strerror(number)}")

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == ROOT else (0o100600, self.cache.size)
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0,
                           BLOCK, 0)

    def answer(self, opcode, node, body):
        if opcode == INIT:
            major, minor, readahead, _ = struct.unpack_from("<4I", body)
            return struct.pack("<4I2H2I2HI7I", 7, min(minor, 31), readahead, 0, 16, 12, MAX_WRITE,
                               1, 0, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"disk":
                raise OSError(errno.ENOENT, "")
            return struct.pack("<4Q2I", DISK, 0, FOREVER, FOREVER, 0, 0) + self.attributes(DISK)
        if opcode in (GETATTR, SETATTR):
            return struct.pack("<Q2I", FOREVER, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 0, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<2QI", body)
            return self.cache.read(offset, size)
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("<2QI", body)
            self.cache.write(offset, body[40:40 + size])
            return struct.pack("<2I", size, 0)
        if opcode == FSYNC:
            self.cache.flush()
            return b""
        if opcode == STATFS:
            return struct.pack("<5Q4I6I", 0, 0, 0, 0, 0, BLOCK, 255, BLOCK, 0, *[0] * 6)
        if opcode in (FLUSH, RELEASE, RELEASEDIR, READDIR, ACCESS, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "")

    def serve_one(self):
        request = os.read(self.fd, MAX_WRITE + 8192)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return
        try:
            data, error = self.answer(opcode, node, request[40:]), 0
        except OSError as e:
            data, error = b"", -e.errno
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except FileNotFoundError:
            pass  # it was interrupted meanwhile


def main():
    folder, image, size_mib = sys.argv[1:4]
    cache = Cache(image, int(size_mib) << 20, "lie" in sys.argv[4:])
    fuse = Fuse(folder, cache)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([fuse.fd, sys.stdin], [], [])
        if sys.stdin in ready:
            words = sys.stdin.readline().split()
            if not words or words[0] == "quit":
                return
            print(*cache.cut(words[1], words[2]), flush=True)
        elif fuse.fd in ready:
            try:
                fuse.serve_one()
            except OSError as e:
                if e.errno == errno.ENODEV:  # unmounted
                    return
                raise


if __name__ == "__main__":
    main()
