#!/usr/bin/env python3
"""One virtual machine: its qemu, the agent in it, and the socket that the cases ask it through.

`Machine` starts qemu on disks that it is given, cold or from the saved state of one that was
ready, runs commands in the guest by way of guest_agent.py, and ends it as a power cut does.
`run` makes the ready state with it, `power` is a campaign on it; run as a program it is the
machine of one case:

    machine.py SOCKET READY_FOLDER WORK_FOLDER [CUT_AFTER]

It answers on SOCKET what `ask` asks, one JSON object per line, and ends with its parent.
"""
import base64
import concurrent.futures
import ctypes
import json
import os
import pathlib
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
GONE = 255  # the status of a command whose machine lost power


def die_with_parent():
    """A process started with this is killed when the *thread* that started it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# Its thread lives as long as this process.
SPAWNER = concurrent.futures.ThreadPoolExecutor(1)

# An emulated processor makes everything slower by about this factor.
KVM = os.environ.get("BERTH_VM_ACCEL") == "kvm"
SLOWNESS = 1 if KVM else 8
# Seconds: a boot takes 15 on an otherwise idle machine.
BOOT_LIMIT = 1200


class Trouble(Exception):
    """The machine failed to do something."""


class Command:
    """A command in the guest: its output so far, and its status once it has ended."""

    def __init__(self, on_output):
        self.on_output = on_output
        self.status = None
        self.ended = threading.Event()

    def end(self, status):
        self.status = status
        self.ended.set()


class Machine:
    def __init__(self, folder, disks, kernel, initrd, memory_mib=1024, options=""):
        self.folder = pathlib.Path(folder)
        self.disks = list(disks)  # qemu's option for each, the first with the root file system
        self.boot_files = (kernel, initrd)
        self.memory_mib = memory_mib
        self.options = options
        self.console = self.folder / "console.log"
        self.qemu = None
        self.agent = None
        self.lock = threading.Lock()
        self.commands = {}
        self.last_number = 0
        self.hello = threading.Event()
        self.serial = ["-serial", f"file:{self.console}"]

    # Starting and ending.

    def arguments(self):
        # The emulation of cmpxchg16b (qemu 7.2) damages the flags: Linux 6.12 dies of it.
        accel = ["-accel", "kvm", "-cpu", "host"] if KVM else [
            "-accel", "tcg,thread=multi", "-cpu", "max,-cx16"]
        kernel, initrd = self.boot_files
        words = ["qemu-system-x86_64", *accel, "-smp", "2", "-m", str(self.memory_mib),
                 "-display", "none", "-nodefaults", "-no-user-config", "-nic", "none",
                 "-kernel", str(kernel), *(["-initrd", str(initrd)] if initrd else []),
                 "-append", f"root=/dev/vda rw console=ttyS0 quiet panic=1 {self.options}",
                 "-device", "virtio-rng-pci", "-device", "vmgenid,guid=auto",
                 "-device", "virtio-serial-pci",
                 "-chardev", f"socket,id=agent,path={self.folder}/agent",
                 "-device", "virtserialport,chardev=agent,name=berth.vm",
                 "-chardev", f"socket,id=qmp,path={self.folder}/qmp,server=on,wait=off",
                 "-mon", "chardev=qmp,mode=control", *self.serial]
        for disk in self.disks:
            words += ["-drive", f"if=virtio,{disk}"]
        return words

    def start(self, state=None):
        """Start qemu: a boot, or the state that `save` left. Wait until the agent answers."""
        path = self.folder / "agent"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(300)
        self.hello.clear()
        words = self.arguments()
        if state:
            words += ["-incoming", f"exec:cat '{state}'"]
        self.errors = open(self.folder / "qemu.log", "w+")
        self.qemu = SPAWNER.submit(
            subprocess.Popen, words, stderr=self.errors, preexec_fn=die_with_parent,
            stdin=None if "stdio" in self.serial else subprocess.DEVNULL).result()
        try:
            self.agent = listener.accept()[0]
        except TimeoutError as e:
            raise Trouble("qemu did not start: " + self.qemu_said()) from e
        finally:
            listener.close()
        threading.Thread(target=self.listen, args=(self.agent, self.qemu), daemon=True).start()
        if not state:
            self.wait_for_hello()
            return
        try:
            self.run("true", limit=30 * SLOWNESS)
        except Trouble as trouble:
            raise Trouble(f"it does not go on from its saved state: {trouble}; {self.qemu_said()}; "
                          f"{self.console_said()}") from trouble

    def wait_for_hello(self):
        if not self.hello.wait(BOOT_LIMIT) or self.qemu.poll() is not None:
            raise Trouble(f"the machine did not come up: {self.qemu_said()}; see {self.console}")

    def qemu_said(self):
        self.errors.seek(0)
        return self.errors.read().strip() or "qemu said nothing"

    def console_said(self):
        lines = self.console.read_text(errors="replace").splitlines() if self.console.exists() else []
        return "its console: " + (" | ".join(lines[-10:]) or "nothing")

    def cut(self):
        """A power cut: what the guest had not flushed to its disk is gone."""
        if self.qemu:
            self.qemu.kill()
            self.qemu.wait()

    def reboot(self):
        """The guest shuts down in order and boots again."""
        self.hello.clear()
        self.run("systemctl reboot", limit=60 * SLOWNESS, check=False)
        self.wait_for_hello()

    def save(self, state):
        """Writes the running machine's state to a file, for `start`, and ends it."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(self.folder / "qmp"))
            lines = sock.makefile("rw")

            def tell(command, **arguments):
                lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
                lines.flush()
                for line in lines:
                    answer = json.loads(line)
                    if "error" in answer:
                        raise Trouble(f"{command}: {answer['error']['desc']}")
                    if "return" in answer:
                        return answer["return"]
                raise Trouble(f"{command}: qemu is gone")

            tell("qmp_capabilities")
            tell("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
            tell("migrate", uri=f"exec:cat > '{state}'")
            while (status := tell("query-migrate")["status"]) != "completed":
                if status in ("failed", "cancelled"):
                    raise Trouble(f"the machine's state could not be saved: {self.qemu_said()}")
                time.sleep(0.05)
            tell("quit")
        self.qemu.wait()

    # The agent.

    def listen(self, agent, qemu):
        """Receive the agent's messages, until its qemu is gone."""
        try:
            with agent.makefile("rb") as lines:
                for line in lines:
                    self.hear(line)
        except OSError:
            pass  # it exited without reading all of its input
        qemu.wait()
        if self.qemu is qemu:
            self.lose_commands()
            self.hello.set()

    def hear(self, line):
        try:
            said = json.loads(line)
        except ValueError:  # truncated
            return
        if "hello" in said:
            self.lose_commands()
            self.hello.set()
            return
        command = self.commands.get(said["id"])
        if command and "status" in said:
            del self.commands[said["id"]]
            command.end(said["status"])
        elif command:
            command.on_output(said["fd"], base64.b64decode(said["data"]))

    def lose_commands(self):
        """Notify those that wait for a command of a system that has gone."""
        with self.lock:
            lost, self.commands = self.commands, {}
        for command in lost.values():
            command.end(GONE)

    def begin(self, words, user=None, stdin=b"", on_output=lambda fd, data: None):
        """Starts a command and returns it; its output goes to `on_output` as it comes."""
        command = Command(on_output)
        with self.lock:
            self.last_number += 1
            number = self.last_number
            self.commands[number] = command
            question = {"id": number, "user": user, "words": words,
                        "stdin": base64.b64encode(stdin).decode()}
            try:
                self.agent.sendall(json.dumps(question).encode() + b"\n")
            except OSError:
                self.commands.pop(number, None)
                command.end(GONE)
        return command

    def run(self, script, user=None, limit=60, check=True, stdin=b""):
        """Runs a script to its end and returns what it printed to standard output."""
        output = {1: b"", 2: b""}

        def keep(fd, data):
            output[fd] += data

        command = self.begin([script], user, stdin, keep)
        if not command.ended.wait(limit):
            raise Trouble(f"no answer within {limit} s: {script}")
        if check and command.status != 0:
            raise Trouble(f"status {command.status}: {script}\n{output[2].decode(errors='replace')}")
        return output[1].decode(errors="replace")


def from_ready(ready, folder):
    """The machine that a ready state was made of, on a disk of its own, before its start."""
    ready, folder = pathlib.Path(ready).resolve(), pathlib.Path(folder).resolve()
    made = json.loads((ready / "machine.json").read_text())
    disk = folder / "disk.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw",
                    "-b", ready / "disk.img", disk], check=True)
    return Machine(folder, [f"file={disk},format=qcow2,discard=unmap"], made["kernel"],
                   made["initrd"], options=made["options"])


def start_ready(ready, folder):
    """The same, running: from the saved state, or booted where an emulated processor fails at that."""
    for _ in range(2):
        machine = from_ready(ready, folder)
        try:
            machine.start(pathlib.Path(ready).resolve() / "state")
            return machine
        except Trouble as trouble:
            print(f"vm: {trouble}", file=sys.stderr)
            machine.cut()
    machine = from_ready(ready, folder)
    machine.start()
    machine.run("systemctl is-system-running --wait", limit=60 * SLOWNESS, check=False)
    return machine


# Requests of a case to its machine. A request is a line {"do": WORD, ...}.

class Question(socketserver.StreamRequestHandler):
    def say(self, **words):
        try:
            self.wfile.write(json.dumps(words).encode() + b"\n")
        except OSError:
            pass  # the client disconnected

    def handle(self):
        asked = json.loads(self.rfile.readline())
        machine = self.server.machine
        try:
            status = getattr(self, "do_" + asked["do"])(machine, asked)
        except Trouble as trouble:
            self.say(fd=2, data=base64.b64encode(f"vm: {trouble}\n".encode()).decode())
            status = GONE
        self.say(status=status)

    def do_run(self, machine, asked):
        def forward(fd, data):
            self.say(fd=fd, data=base64.b64encode(data).decode())

        command = machine.begin(asked["words"], asked.get("user"),
                                base64.b64decode(asked.get("stdin", "")), forward)
        if not command.ended.wait(asked["limit"] * SLOWNESS):
            raise Trouble(f"no end within {asked['limit'] * SLOWNESS} s")
        return command.status

    def do_cut(self, machine, _asked):
        machine.cut()
        return 0

    def do_boot(self, machine, _asked):
        machine.cut()
        machine.start()
        return 0

    def do_reboot(self, machine, _asked):
        machine.reboot()
        return 0

    def do_hangs(self, machine, _asked):
        """Status 0: it has power and does not answer. With KVM that is the guest's own fault."""
        answer = machine.begin(["true"])
        return int(KVM or answer.ended.wait(30 * SLOWNESS))

    def do_slowness(self, _machine, _asked):
        self.say(fd=1, data=base64.b64encode(f"{SLOWNESS}\n".encode()).decode())
        return 0


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def main():
    path, ready, folder = sys.argv[1:4]
    die_with_parent()
    machine = start_ready(ready, folder)
    # The socket exists once the machine is ready.
    with Server(path + ".new", Question) as server:
        server.machine = machine
        os.rename(path + ".new", path)
        server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except Trouble as trouble:
        sys.exit(f"vm: {trouble}")
