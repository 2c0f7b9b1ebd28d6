"""Connections that want memory, time or all places of a collector, and do not get them."""

import contextlib
import socket

import pytest

from riata.local import Task

from collecting import Person, Server
from fuzzing import memory

TEXT = """
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""
HASTY = """
from riata.collect import guard
guard.HEAD_SECONDS = guard.ANSWER_SECONDS = 0.4
"""
NARROW = """
from riata.collect import guard
guard.MOST_CONNECTIONS = 5
"""
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def serve(tmp_path):
    (tmp_path / "task.toml").write_text(TEXT)
    servers = []

    def start(code=""):
        servers.append(Server(tmp_path / "task.toml", tmp_path / "store", code=code))
        servers[-1].task = Task.load(tmp_path / "task.toml").id
        return servers[-1]

    yield start
    for server in servers:
        with Person(server.port, server.task) as person:
            assert person.send(bytes(8)) == 201  # whatever happened, others are served
        assert server.stop() == ""


def connect(server):
    connection = socket.create_connection(("127.0.0.1", server.port), 30)
    connection.settimeout(30)
    return connection


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
        other.sendall(GET)
        assert other.recv(9) == b"HTTP/1.1 "
    with connect(server) as one_more:
        assert ended(one_more)
    for other in others:
        other.close()
    for _ in range(100):
        with connect(server) as one_more, contextlib.suppress(ConnectionError):
            one_more.sendall(GET)
            if one_more.recv(9) == b"HTTP/1.1 ":
                return
    pytest.fail("the places stay taken")
