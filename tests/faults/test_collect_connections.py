"""Connections that want memory, time or all places of a collector, and do not get them."""

import contextlib
import re
import resource
import socket
import urllib.request

import numpy as np
import pytest

from riata.local import Task

from collecting import PATIENCE, Person, Server
from fuzzing import memory

pytestmark = pytest.mark.long

TEXT = """
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""
HASTY = """
from riata.collect import connection_limits
connection_limits.HEAD_SECONDS = connection_limits.ANSWER_SECONDS = 0.4
"""
NARROW = """
from riata.collect import connection_limits
connection_limits.MOST_CONNECTIONS = 5
"""
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = (
    b"POST /tasks/%s/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n"
    b"Content-Type: application/octet-stream\r\n\r\n123"
)


@pytest.fixture
def serve(tmp_path):
    (tmp_path / "task.toml").write_text(TEXT)
    servers = []

    def start(code="", *options):
        servers.append(Server(tmp_path / "task.toml", tmp_path / "store", *options, code=code))
        servers[-1].task = Task.load(tmp_path / "task.toml").id
        return servers[-1]

    yield start
    try:
        for server in servers:
            with Person(server.port, server.task, "127.0.7.7") as person:
                assert person.send(bytes(8)) == 201  # whatever happened, others are served
            assert server.stop() == ""
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()


def connect(server, address="127.0.0.1"):
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE, (address, 0))
    connection.settimeout(PATIENCE)
    return connection


def answered(connection):
    """Whether a request on the connection is answered."""
    connection.sendall(GET)
    answer = b""
    while not answer.endswith(b"ok\n"):
        part = connection.recv(1 << 16)
        if not part:
            return False
        answer += part
    return answer.startswith(b"HTTP/1.1 200 ")


def still_open(connection):
    """Whether the other side has not closed the connection."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(PATIENCE)
    return False


def metric(server, name):
    text = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    return int(re.search(rf"^{re.escape(name)} (\d+)$", text, re.M)[1])


def refusals(connection, reason):
    """How many connections were refused, asked on one that has its place."""
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = b""
    while part := connection.recv(1 << 16):
        text += part
    return int(re.search(rf'refusals_total{{reason="{reason}"}} (\d+)', text.decode())[1])


def ended(connection):
    """Whether the collector ends the connection: a timeout would raise."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_neither_heads_without_end_nor_requests_without_wait_take_memory(serve):
    server = serve()
    before = memory(server.process.pid)
    for begin in (b"GET /", GET[:-2] + b"X: ", GET[:-2] + b"X", GET + GET[:20]):
        with connect(server) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(begin)
                for _ in range(400):
                    connection.sendall(b"y" * 100_000)
                pytest.fail("forty megabytes were taken")
            assert ended(connection)
    with connect(server) as connection:
        connection.settimeout(1)  # once the collector stops reading, this is all there is to do
        with contextlib.suppress(OSError):
            for _ in range(200):
                connection.sendall(GET * 4000)
    assert memory(server.process.pid) < before + 30


def test_who_says_nothing_or_little_is_not_waited_for(serve):
    server = serve(HASTY)
    for begin in (b"", b"GET /heal", GET, GET + b"G", b"\r\n"):
        with connect(server) as connection:
            connection.sendall(begin)
            assert ended(connection)
    with connect(server) as connection:
        connection.settimeout(0.1)
        for byte in (GET + GET[:-2] + b"X: " + b"y" * 290)[:300]:
            try:
                connection.sendall(bytes([byte]))
                connection.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("thirty seconds were not enough")


def test_who_does_not_read_is_not_waited_for(serve):
    server = serve(HASTY)
    with connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        page = b"GET /survey.js HTTP/1.1\r\nHost: x\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            while True:  # a timeout would raise
                connection.sendall(page * 20)


def test_there_are_so_many_places_and_they_are_free_again(serve):
    server = serve(NARROW)
    others = [connect(server) for _ in range(5)]
    for other in others:
        assert answered(other)
    with connect(server, "127.0.0.2") as one_more:
        assert answered(one_more)  # in the place of one that is idle
    assert sum(still_open(other) for other in others) == 4
    for other in others:
        other.close()


def busy(server, address):
    """A connection whose request waits for the store, which waits for a file to go away."""
    connection = connect(server, address)
    connection.sendall(
        f"POST /tasks/{server.task}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n"
        "Content-Type: application/octet-stream\r\n\r\n12345678".encode()
    )
    return connection


STUCK = """
import os, time
from riata.collect.segments import Segments
real = Segments.append
def append(self, rows):
    while os.path.exists(self._directory / "stuck"):
        time.sleep(0.01)
    return real(self, rows)
Segments.append = append
"""


def test_who_is_served_is_not_sent_away_and_the_new_one_hears_why(serve, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "stuck").touch()
    server = serve(STUCK, "--connections-per-address", 3)
    waiting = [busy(server, "127.0.0.1") for _ in range(3)]
    with connect(server, "127.0.0.2") as other:
        assert answered(other)  # what was sent before has been read
    with connect(server) as one_more:
        answer = one_more.recv(1000)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: " in answer.lower()
    with connect(server, "127.0.0.2") as other:
        assert answered(other)
        assert refusals(other, "connections") >= 1
    (tmp_path / "store" / "stuck").unlink()
    for connection in waiting:
        assert connection.recv(12) == b"HTTP/1.1 201"
        connection.close()


@pytest.fixture
def many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 2000:
        pytest.skip("so many files may not be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2000), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
def test_one_address_with_a_thousand_idle_connections_keeps_nobody_out(serve):
    server = serve()
    crowd = []
    for i in range(1100):
        with contextlib.suppress(ConnectionError):
            crowd.append(connect(server))
            # nothing, half a head, half a body, or a request that was answered
            crowd[-1].sendall([b"", GET[:9], HALF % server.task.encode(), GET][i % 4])
    for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        for _ in range(20):
            with connect(server, address) as visitor:
                assert answered(visitor)
    assert sum(still_open(one) for one in crowd) <= 100
    for one in crowd:
        one.close()


def test_many_addresses_with_idle_connections_keep_nobody_out(serve):
    server = serve(NARROW)
    crowd = [connect(server, f"127.0.1.{i}") for i in range(1, 60)]
    for i in range(1, 20):
        with connect(server, f"127.0.2.{i}") as visitor:
            assert answered(visitor)
    for one in crowd:
        one.close()


def test_the_address_that_holds_most_places_loses_them_first(serve):
    server = serve(NARROW)
    modest = connect(server, "127.0.0.9")
    assert answered(modest)
    greedy = []
    for _ in range(20):
        greedy.append(connect(server))
        with contextlib.suppress(ConnectionError):
            answered(greedy[-1])
    assert answered(modest)
    for one in (modest, *greedy):
        one.close()


@pytest.mark.parametrize("size", [1, 500, 65_536])
def test_one_address_cannot_make_up_a_crowd(serve, size):
    server = serve("", "--reports-per-address", 1000)
    rng, statuses = np.random.default_rng(1), []
    with Person(server.port, server.task) as person:
        for _ in range(1200 if size == 1 else 20):
            statuses.append(person.send(rng.bytes(8 * size)))
    assert set(statuses) == {1: {201, 429}, 500: {201, 429}, 65_536: {413}}[size]
    counted = size * statuses.count(201)
    assert metric(server, "riata_reports") == counted < 1200
    with Person(server.port, server.task, "127.0.0.2") as person:
        assert person.send(b"12345678") == 201


def test_the_default_stops_a_flood(serve):
    server = serve()
    rng, statuses = np.random.default_rng(2), []
    with Person(server.port, server.task) as person:
        statuses = [person.send(rng.bytes(8 * 1000)) for _ in range(30)]
    assert statuses[:10] == [201] * 10
    assert 429 in statuses
    assert metric(server, "riata_reports") == 1000 * statuses.count(201) < 20_000


def forwarded(server, address, people, body):
    with Person(server.port, server.task, address) as person:
        person.head += f"X-Forwarded-For: {people}\r\n"
        return person.send(body)


def test_a_proxy_is_believed_only_if_it_is_trusted(serve):
    limits = ("--reports-per-address", 1, "--connections-per-address", 2)
    server = serve("", *limits, "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "127.0.3.0/24")
    assert forwarded(server, "127.0.0.1", "198.51.100.1", b"report 1") == 201
    assert forwarded(server, "127.0.0.1", "198.51.100.1", b"report 2") == 429
    assert forwarded(server, "127.0.0.1", "198.51.100.2", b"report 3") == 201
    # what people claim stands before what the proxy adds, and does not count
    assert forwarded(server, "127.0.0.1", "198.51.100.9, 198.51.100.1", b"report 4") == 429
    assert forwarded(server, "127.0.3.7", "198.51.100.3, 127.0.0.1", b"report 5") == 201
    assert forwarded(server, "127.0.0.1", "198.51.100.3", b"report 6") == 429
    # strangers are not believed
    assert forwarded(server, "127.0.0.5", "198.51.100.7", b"report 7") == 201
    assert forwarded(server, "127.0.0.5", "198.51.100.8", b"report 8") == 429
    # a proxy has connections of many
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(connect(server)) for _ in range(9)]
        assert all(answered(one) for one in others)
        assert all(still_open(one) for one in others)


def test_without_a_trusted_proxy_nobody_is_believed(serve):
    server = serve("", "--reports-per-address", 1)
    assert forwarded(server, "127.0.0.5", "198.51.100.1", b"report 1") == 201
    assert forwarded(server, "127.0.0.5", "198.51.100.2", b"report 2") == 429
