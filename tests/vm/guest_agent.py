"""Runs commands in the virtual machine for the tests on its host.

Both sides write one JSON object per line to a virtio-serial port. The host asks

    {"id": N, "user": NAME or null, "words": [...], "stdin": BASE64}

one word is a script for bash, several are a program and its arguments. With a user it runs in a
login session of that user, through PAM; otherwise as root in this service. The answers are

    {"id": N, "fd": 1 or 2, "data": BASE64}     as the output comes
    {"id": N, "status": EXIT_STATUS}            128 + N for a signal, when all output has come
    {"hello": true}                             when the agent starts, so after each boot

Commands run side by side. Standard input is what the request carries, else empty.
"""
import base64
import json
import os
import shlex
import subprocess
import threading

PORT = "/dev/virtio-ports/berth.vm"


class Agent:
    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()

    def say(self, **words):
        data = json.dumps(words).encode() + b"\n"
        with self.lock:
            while data:
                data = data[os.write(self.port, data):]

    def forward(self, number, fd, pipe):
        while chunk := os.read(pipe.fileno(), 65536):
            self.say(id=number, fd=fd, data=base64.b64encode(chunk).decode())

    def run(self, number, user, words, stdin):
        argv = ["bash", "-c", words[0]] if len(words) == 1 else words
        if user:
            argv = ["su", "-", user, "-c", words[0] if len(words) == 1 else shlex.join(words)]
        try:
            child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, cwd="/", start_new_session=True)
        except OSError as error:
            text = f"{argv[0]}: {error.strerror}\n".encode()
            self.say(id=number, fd=2, data=base64.b64encode(text).decode())
            self.say(id=number, status=127)
            return
        readers = [threading.Thread(target=self.forward, args=(number, fd, pipe))
                   for fd, pipe in ((1, child.stdout), (2, child.stderr))]
        for reader in readers:
            reader.start()
        try:
            child.stdin.write(base64.b64decode(stdin or ""))
            child.stdin.close()
        except BrokenPipeError:
            pass
        status = child.wait()
        for reader in readers:
            reader.join()
        self.say(id=number, status=status if status >= 0 else 128 - status)

    def serve(self):
        self.say(hello=True)
        pending = b""
        while True:
            chunk = os.read(self.port, 65536)
            if not chunk:  # the host has not connected yet
                threading.Event().wait(0.1)
                continue
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                asked = json.loads(line)
                threading.Thread(target=self.run, daemon=True, args=(
                    asked["id"], asked.get("user"), asked["words"], asked.get("stdin"))).start()


os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                  HOME="/root", USER="root", LOGNAME="root", LANG="C.UTF-8")
for name in ("INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"):
    os.environ.pop(name, None)
os.chdir("/")
Agent(os.open(PORT, os.O_RDWR)).serve()
