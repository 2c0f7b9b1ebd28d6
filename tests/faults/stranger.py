"""What somebody without keys gets at a Dask cluster: `python stranger.py UID ADDRESS ...`.

Prints the addresses, and the ways in, that led somewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from distributed import Client
from distributed.core import connect
from distributed.protocol.pickle import dumps
from distributed.security import Security

#: Seconds for one attempt, which is made again and again when it is refused.
PATIENCE = float(os.environ.get("PATIENCE", "3"))


def whoami():
    return os.getuid()


async def call(address, security, **message):
    options = security.get_connection_args("client")
    comm = await connect(address, timeout=PATIENCE, **options)
    try:
        await comm.write({**message, "reply": True})
        return await asyncio.wait_for(comm.read(), PATIENCE)
    finally:
        comm.abort()


def identity(address, security):
    return bool(asyncio.run(call(address, security, op="identity"))["type"])


def run_code(address, security):
    message = {"op": "run", "function": dumps(whoami), "args": dumps(()), "kwargs": dumps({})}
    return asyncio.run(call(address, security, **message))["status"] == "OK"


def run_on_scheduler(address, security):
    message = {"op": "run_function", "function": dumps(whoami)}
    return asyncio.run(call(address, security, **message))["status"] == "OK"


def join_as_client(address, security):
    with Client(address, security=security, timeout=PATIENCE, set_as_default=False) as client:
        return bool(client.run(whoami))


def plain_http(address, security):
    where = address.split("://")[1]
    for path in ("", "/status", "/info/main/workers.html", "/metrics", "/json/counts.json"):
        with urllib.request.urlopen(f"http://{where}{path}", timeout=PATIENCE) as page:
            if page.read():
                return True
    return False


def any_bytes(address, security):
    """Bytes of an application, after a handshake that shows no certificate."""
    host, port = address.split("://")[1].rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
        context.wrap_socket(plain) as wrapped,
    ):
        return bool(wrapped.recv(1))


#: Each by plain TCP without a key, and by TLS with keys that the stranger made.
WAYS = {
    f"{way.__name__}, {name}": (way, scheme, security)
    for way in (identity, run_code, run_on_scheduler, join_as_client)
    for name, scheme, security in (
        ("no key", "tcp", Security()), ("other keys", "tls", Security.temporary()),
    )
} | {way.__name__: (way, "tls", Security()) for way in (plain_http, any_bytes)}  # fmt: skip


def try_one(job):
    address, name = job
    way, scheme, security = WAYS[name]
    with contextlib.suppress(Exception):
        return way(f"{scheme}://{address}", security)
    return False


if __name__ == "__main__":
    uid, *addresses = sys.argv[1:]
    if int(uid) != os.getuid():  # once everything is imported, which others may not read
        os.setgid(int(uid))
        os.setuid(int(uid))
    names = os.environ["WAYS"].split("; ") if "WAYS" in os.environ else list(WAYS)
    jobs = [(address.split("://")[1], name) for address in addresses for name in names]
    with ThreadPoolExecutor(len(jobs)) as pool:
        good = list(pool.map(try_one, jobs))
        print(json.dumps([job for job, worked in zip(jobs, good, strict=True) if worked]))
