"""How many reports a collector makes durable in a second, over loopback.

    python benchmarks/collect.py

One process serves, one sends; the peer is the same server with a store that keeps nothing. Single
reports are pipelined over several connections, as a proxy in front of many phones sends them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from riata.local import Task

from results import keep, show

SECONDS = 5.0
CONNECTIONS = 64
TASK = """
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""
#: The same server, which forgets at once.
WITHOUT = """
import numpy as np
import riata.collect.server
class Nowhere:
    def __init__(self, *arguments): self.count = 0
    def __len__(self): return self.count
    def add(self, seeds, tokens=None):
        self.count += len(seeds)
        return np.ones(len(seeds), dtype=bool)
    def close(self): pass
riata.collect.server.open_store = Nowhere
"""
SERVE = "from riata.cli import main; main()"


def serve(code: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", code + SERVE, "collect", "serve", str(folder / "task.toml")]
    command += ["--store", str(folder / f"store-{port}"), "--port", str(port)]
    command += ["--reports-per-address", "0", "--most-reports", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, port
        except OSError:
            time.sleep(0.05)


class Sender(asyncio.Protocol):
    """One connection, one request in flight."""

    def __init__(self, head: bytes, size: int, end: float) -> None:
        self.head, self.size, self.end = head, size, end
        self.accepted, self.times = 0, list[float]()
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.begun = time.perf_counter()
        if self.begun >= self.end:
            self.transport.close()
            self.done.set_result(None)
            return
        self.transport.write(self.head + os.urandom(self.size))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 201"):
            raise SystemExit(f"The collector answered {data[:60]!r}.")
        self.times.append(time.perf_counter() - self.begun)
        self.accepted += self.size // 8
        self.send()


async def load(port: int, task: str, reports: int, connections: int) -> tuple[float, float]:
    """Reports a second, and the slowest of a hundred answers in milliseconds."""
    head = (
        f"POST /tasks/{task}/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream"
        f"\r\nContent-Length: {8 * reports}\r\n\r\n"
    ).encode()
    loop, begun = asyncio.get_running_loop(), time.perf_counter()
    senders = [Sender(head, 8 * reports, begun + SECONDS) for _ in range(connections)]
    for sender in senders:
        await loop.create_connection(lambda sender=sender: sender, "127.0.0.1", port)
    await asyncio.gather(*(sender.done for sender in senders))
    took = time.perf_counter() - begun
    times = sorted(one for sender in senders for one in sender.times)
    slow = times[int(0.99 * len(times))]
    return sum(sender.accepted for sender in senders) / took, 1e3 * slow


def measured(code: str, folder: Path, reports: int, connections: int) -> tuple[float, float]:
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    process, port = serve(code, folder)
    try:
        with runner:
            return runner.run(load(port, Task.load(folder / "task.toml").id, reports, connections))
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        folder = Path(place)
        (folder / "task.toml").write_text(TASK)
        for name, reports, connections in (("single", 1, CONNECTIONS), ("batches", 1 << 15, 4)):
            kept, slow = measured("", folder, reports, connections)
            peer, _ = measured(WITHOUT, folder, reports, connections)
            rows.append(
                {
                    "what": name, "reports in a request": reports, "connections": connections,
                    "durable reports/s": round(kept), "without storage": round(peer),
                    "ratio": round(kept / peer, 3), "p99 ms": round(slow, 1),
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    show("Reports a second over loopback", rows)
    keep("collect", {"rows": rows})


if __name__ == "__main__":
    main()
