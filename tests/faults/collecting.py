"""A collector in a process of its own, and people who send to it."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np

#: Seconds after which something hangs, however slow and busy the machine is.
PATIENCE = 300
SOUND = ""
#: For loads that stand for many people but come from one address.
UNLIMITED = ("--reports-per-address", "0", "--most-reports", "0")
#: Acknowledges what it has not written yet.
BROKEN = """
import asyncio
from riata.collect.committer import Committer
real = Committer.add
def add(self, reports, token=None):
    waiting = real(self, reports, token)
    done = asyncio.get_running_loop().create_future()
    done.set_result(True)
    return done
Committer.add = add
"""
#: Counts a report that comes again as another one.
DOUBLE = """
import numpy as np
from riata.collect.word_set import WordSet
WordSet.difference = lambda self, seeds: np.sort(seeds)
"""
#: Loads everything once, then forks a collector for each line that it reads.
FORKS = """
import json, os, signal, sys
import uvicorn
import riata.collect.dashboard, riata.collect.server, riata.collect.service
from riata.cli import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.argv = ["riata", "collect", "serve", *json.loads(line)]
        main()
        os._exit(0)
    print("child", child, flush=True)
"""


def free_port():
    """A port below those that systems give to clients: the fuzzer's connections take many."""
    while True:
        port = 12_000 + secrets.randbelow(18_000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def wait_for(port, alive):
    end = time.monotonic() + PATIENCE
    while alive() and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.005)
    return False


class Forked:
    """Collectors that begin at once and are killed."""

    def __init__(self, code):
        self.parent = subprocess.Popen(
            [sys.executable, "-c", code + FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        self.child = 0

    def serve(self, *arguments):
        """The port of a new collector."""
        port = free_port()
        line = json.dumps([*map(str, arguments), "--port", str(port)])
        self.parent.stdin.write(line + "\n")
        self.parent.stdin.flush()
        while (line := self.parent.stdout.readline()) and not line.startswith("child"):
            pass
        self.child = int(line.split()[1])
        assert wait_for(port, self.alive)
        return port

    def alive(self):
        try:
            os.kill(self.child, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self):
        os.kill(self.child, signal.SIGKILL)
        while self.alive():
            time.sleep(0.001)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.parent.stdin.close()
        self.parent.wait()
        self.parent.stdout.close()


class Server:
    """`riata collect serve`, ready for requests."""

    def __init__(self, task_file, store, *options, before=None, code=SOUND):
        self.port = free_port()
        command = [sys.executable, "-c", f"{code}\nfrom riata.cli import main; main()"]
        command += ["collect", "serve", str(task_file)]
        command += ["--store", str(store), "--port", str(self.port), *map(str, options)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=before,
        )
        self.dashboard = None
        for line in self.process.stdout:
            if line.startswith(b"Dashboard:"):
                self.dashboard = line.split()[1].decode()
                break
        if not wait_for(self.port, lambda: self.process.poll() is None):
            self.kill()
            raise RuntimeError("the collector did not start")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """What it wrote to standard error until it stopped."""
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=3600)
        return errors.decode()


class Person:
    """A connection that sends bodies one after another and reads the status of each answer."""

    def __init__(self, port, task, address="127.0.0.1"):
        self.connection = socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))
        self.connection.settimeout(PATIENCE)
        self.stream = self.connection.makefile("rb")
        self.head = (
            f"POST /tasks/{task}/reports HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: application/octet-stream\r\n"
        )

    def send(self, body, token=None):
        extra = f"Riata-Token: {token}\r\n" if token else ""
        head = f"{self.head}{extra}Content-Length: {len(body)}\r\n\r\n".encode()
        self.connection.sendall(head + body)
        status = self.stream.readline().split()
        if len(status) < 2:
            raise ConnectionResetError
        length = 0
        while (line := self.stream.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if len(self.stream.read(length)) != length:
            raise ConnectionResetError
        return int(status[1])

    def close(self):
        self.stream.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()


def killed(task, task_file, store, kills, seed, code=SOUND, tokens=None, people=6):
    """Load a collector while it is killed again and again.

    Returns the reports that were acknowledged and all that were sent. Who got no answer sends the
    same bytes again to the collector that comes after. Tokens are the file of the key, what makes
    one, and what is told of each that was accepted.
    """
    rng = np.random.default_rng(seed)
    acknowledged, sent, again = set(), set(), [[] for _ in range(people)]
    options = ["--tokens", tokens[0]] if tokens else []

    def load(i, port, rng):
        waiting, again[i] = again[i], []
        try:
            with Person(port, task.id) as person:
                while True:
                    if waiting:
                        body, token = waiting.pop()
                    else:
                        size = 1 if tokens or i % 2 else int(rng.integers(1, 3000))
                        body = rng.bytes(8 * size)
                        token = tokens[1]() if tokens else None
                    again[i].append((body, token))
                    seeds = np.frombuffer(body, ">u8").tolist()
                    sent.update(seeds)
                    if person.send(body, token) == 201:
                        acknowledged.update(seeds)
                        again[i].pop()
                        if tokens:
                            tokens[2](body, token)
        except OSError:
            again[i] += waiting

    with Forked(code) as collector:
        for _ in range(kills):
            port = collector.serve(task_file, "--store", store, *UNLIMITED, *options)
            loads = [(i, port, one) for i, one in enumerate(rng.spawn(people))]
            threads = [threading.Thread(target=load, args=one) for one in loads]
            for thread in threads:
                thread.start()
            enough = len(acknowledged) + int(rng.integers(15, 40))
            time.sleep(float(rng.uniform(0.0, 0.4)))
            while len(acknowledged) < enough and any(one.is_alive() for one in threads):
                time.sleep(0.001)  # a busy machine
            collector.kill()
            for thread in threads:
                thread.join()
    return acknowledged, sent
