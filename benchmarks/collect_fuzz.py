"""Requests that no browser sends, by the hundred thousand, to a collector on loopback.

    python benchmarks/collect_fuzz.py [requests] [seed]

Three kinds: bytes that are hardly HTTP, uploads that are wrong in one place or right, and what
schemathesis makes of the OpenAPI description if it is installed. The collector must answer a good
request at the end, hold exactly what it acknowledged, and its memory must stay flat.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from riata.collect.directory import ReadDirectory
from riata.local import Aggregator, Task

from collect import TASK, serve
from results import keep, show

#: Requests in one go on one connection.
_AT_ONCE = 40


def upload(rng: random.Random, task: str) -> tuple[bytes, bool]:
    """A request whose answer is complete, and whether it should be accepted."""
    body = rng.randbytes(8 * rng.choice([1, 1, 1, 2, 50]))
    path, kind, length = f"/tasks/{task}/reports", "application/octet-stream", str(len(body))
    wrong = rng.randrange(8)
    if wrong == 1:
        path = f"/tasks/{rng.randbytes(32).hex()}/reports"
    elif wrong == 2:
        kind = rng.choice(["text/plain", "", "application/json", kind + ";q=1", kind.upper()])
    elif wrong == 3:
        body += rng.randbytes(rng.randrange(1, 8))
        length = str(len(body))
    elif wrong == 4:
        body, length = b"", "0"
    elif wrong == 5:
        path += rng.choice(["/", "%00", "?x=1", "/../reports", "%2e", "#x", "/" * 50])
    extra = ""
    if rng.randrange(3) == 0:
        name = rng.choice(["Riata-Token", "X-Forwarded-For", "Cookie", "Expect", "Te", "Range"])
        value = "".join(chr(rng.randrange(33, 127)) for _ in range(rng.randrange(40)))
        extra = f"{name}: {value}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{extra}"
    good = wrong in (0, 6, 7) or (wrong == 5 and "?x" in path)
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body, good


def damaged(rng: random.Random, task: str) -> bytes:
    """A request with bytes changed, added or taken out, or no request at all."""
    data = bytearray(upload(rng, task)[0])
    choice = rng.randrange(4)
    if choice == 0:
        return rng.randbytes(rng.randrange(1, 300))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        if choice == 1:
            data[at] = rng.randrange(256)
        elif choice == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            del data[at : at + rng.randrange(1, 9)]
            if not data:
                break
    return bytes(data)


def answers(stream: bytes) -> list[int]:
    """The status of each answer in a stream."""
    found, at = [], 0
    while (end := stream.find(b"\r\n\r\n", at)) >= 0:
        head = stream[at:end].lower()
        found.append(int(head[9:12]))
        length = head.find(b"content-length:")
        size = int(head[length + 15 :].split(b"\r\n")[0]) if length >= 0 else 0
        at = end + 4 + size
    return found


def exchange(port: int, data: bytes, patience: float, *, leave: bool = False) -> bytes:
    """What comes back until the connection is quiet or closed; who leaves says so at once."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.settimeout(patience)
        parts = []
        try:
            connection.sendall(data)
            if leave:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                parts.append(part)
        except OSError:
            pass
        return b"".join(parts)


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def schemathesis(port: int) -> tuple[int, int] | None:
    """How many cases schemathesis tried, and how many failed; None if it is not there."""
    program = Path(sys.executable).with_name("schemathesis")
    if not program.exists():
        return None
    command = [str(program), "run", f"http://127.0.0.1:{port}/openapi.json"]
    command += ["--checks", "not_a_server_error", "--max-examples", "300", "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = [line for line in done.stdout.splitlines() if "generated" in line]
    print("\n".join(done.stdout.splitlines()[-12:]))
    cases = int("".join(c for c in found[-1].split("generated")[0] if c.isdigit())) if found else 0
    return cases, done.returncode


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "task.toml").write_text(TASK)
        task = Task.load(folder / "task.toml")
        process, port = serve("", folder)
        answered, sent, statuses, memories = 0, 0, dict[int, int](), list[float]()
        begun = time.perf_counter()
        while sent < wanted and process.poll() is None:
            made = [upload(rng, task.id) for _ in range(_AT_ONCE)]
            data = b"".join(data for data, _ in made) + upload_good(task.id)
            found = answers(exchange(port, data, 2.0))
            answered += len(found)
            for (data, good), status in zip(made, found, strict=False):
                # what a header like Expect does to the answers is the server's own business
                assert status < 500, data
                assert good or status != 201, data
            broken = [damaged(rng, task.id) for _ in range(2)]
            for data in broken:
                found += answers(exchange(port, data, 2.0, leave=True))
            for status in found:
                statuses[status] = statuses.get(status, 0) + 1
            sent += len(made) + 1 + len(broken)
            if sent // 20_000 > len(memories):
                memories.append(memory(process.pid))
        seconds = time.perf_counter() - begun
        driven = schemathesis(port)
        alive = process.poll() is None and answers(exchange(port, upload_good(task.id), 5.0)) == [
            201
        ]
        process.terminate()
        process.wait()
        (store,) = folder.glob("store-*")
        seeds = np.concatenate(list(ReadDirectory(store, task).batches()))
        model = Aggregator(task).add(seeds).solve()
        rows = [
            {
                "requests": sent, "answered": answered, "seconds": round(seconds),
                "answers": json.dumps(statuses),
                "schemathesis": json.dumps(driven), "alive": alive, "reports": len(seeds),
                "finite": bool(np.isfinite(model.mean).all()),
                "MB early": round(memories[0], 1) if memories else None,
                "MB late": round(memories[-1], 1) if memories else None,
            }
        ]  # fmt: skip
    show("Fuzzed requests", rows)
    keep("collect_fuzz", {"rows": rows, "memories": memories})


def upload_good(task: str) -> bytes:
    head = f"POST /tasks/{task}/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    kind = "Content-Type: application/octet-stream\r\nContent-Length: 8\r\n\r\n"
    return (head + kind).encode() + bytes(8)


if __name__ == "__main__":
    main()
