"""Stores whose writes fail, each call in turn: what was refused is not kept, a token counts once.

The calls of the operating system fail for files and SQLite (`failing_calls.c`), the statements and
commits for databases, and whole disks are full: of a small tmpfs, or by a limit of the file size.
"""

import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from riata.collect import segments
from riata.collect.directory import DirectoryStore
from riata.collect.stores import records_at
from riata.collect.tokens import Tokens
from riata.local.report_format import first_occurrences

import store_faults
from collecting import Person, Server
from database_faults import every_statement
from store_faults import TASK, WAYS, every_call, place_of, words

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")


class PatchedCalls:
    """Fails calls of Python's `os`, where there is no compiler; SQLite's are out of reach."""

    NAMES = ("write", "fsync", "ftruncate", "replace", "open")

    def __init__(self, monkeypatch):
        self._left = self._several = self._number = self._half = self._failed = 0
        self._armed = False
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name, real):
        def call(*arguments, **more):
            counted = name != "open" or arguments[1] & os.O_CREAT
            if self._armed and counted:
                fails, self._left = -self._several < self._left <= 0, self._left - 1
                if fails:
                    self._failed += 1
                    if name == "write" and self._half:
                        return real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    raise OSError(self._number, os.strerror(self._number))
            return real(*arguments, **more)

        return call

    def arm(self, k, number, several, half):
        self._left, self._number, self._several, self._half = k, number, several, half
        self._failed, self._armed = 0, True

    def disarm(self):
        self._armed = False
        return self._failed


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", store_faults.SEGMENT_BYTES)
    return PatchedCalls(monkeypatch)


@pytest.mark.parametrize("with_tokens", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_directory_under_each_failing_call_of_python(calls, with_tokens, way):
    assert every_call("directory", with_tokens, way, calls) > 15


def apart(self, seeds, tokens=None):
    """Reports first, tokens later: two commit points."""
    unused = first_occurrences(tokens) & ~self._tokens.contains(tokens)
    new = self._seeds.difference(seeds[unused])
    if len(new):
        self._reports.append(new[:, None])
        self._seeds.update(new)
    if unused.any():
        self._pairs.append(np.stack([seeds[unused], tokens[unused]], axis=1))
        self._tokens.update(tokens[unused])
    return unused | self._seeds.contains(seeds)


def forgetful(self, data):
    """What a failed write left behind stays."""
    os.write(self._file, data)
    os.fsync(self._file)


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [(DirectoryStore, "add", apart), (segments.Segments, "_extend", forgetful)],
)
def test_the_faults_would_find_stores_that_are_broken(calls, monkeypatch, where, name, broken):
    monkeypatch.setattr(where, name, broken)

    def all_ways():
        for way in WAYS:
            every_call("directory", True, way, calls)

    with pytest.raises(AssertionError):
        all_ways()


def run_under_failing_calls(tmp_path, *arguments):
    """The lines that `store_faults.py` prints under failing calls of the operating system."""
    library = tmp_path / "failing_calls.so"
    source = HERE / "failing_calls.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    ran = subprocess.run(
        [sys.executable, HERE / "store_faults.py", library, *arguments],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [int(line.split()[-1]) for line in ran.stdout.splitlines()]


needs_compiler = pytest.mark.skipif(
    not COMPILER or sys.platform != "linux", reason="compiles failing_calls.c for Linux"
)


@needs_compiler
def test_a_directory_under_each_failing_call(tmp_path):
    assert min(run_under_failing_calls(tmp_path, "directory")) > 20


@needs_compiler
def test_sqlite_under_each_failing_call_for_a_token(tmp_path):
    assert min(run_under_failing_calls(tmp_path, "sqlite", "short")) > 50


@needs_compiler
@pytest.mark.slow
def test_sqlite_under_each_failing_call(tmp_path):
    assert min(run_under_failing_calls(tmp_path, "sqlite")) > 100


@pytest.mark.parametrize("with_tokens", [True, False])
def test_sqlite_under_each_failing_statement_and_commit(tmp_path, with_tokens):
    places = (f"sqlite:///{tmp_path}/{i}.db" for i in range(10**6))
    assert every_statement(lambda: next(places), with_tokens) > 40


# The whole service.

TEXT = TASK.canonical.decode()


@pytest.fixture
def serve(tmp_path):
    """Starts collectors, with tokens or without; what is left of them at the end is killed."""
    (tmp_path / "task.json").write_text(TEXT)
    with contextlib.ExitStack() as stack:

        def start(place, tokens=True, before=None):
            options = ("--tokens", tmp_path / "key") if tokens else ()
            server = Server(tmp_path / "task.json", place, *options, before=before)
            stack.callback(lambda: server.process.poll() is None and server.kill())
            person = stack.enter_context(Person(server.port, TASK.id))
            return Crowd(server, person, Tokens.at(tmp_path / "key", TASK.id))

        yield start


@pytest.fixture
def disk(tmp_path):
    """A disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(disk, room=0):
    """Leave so much room, or none."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "ballast").write_bytes(bytes(max(free - room, 0)))


def metrics(server):
    text = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    return {name: int(n) for name, n in re.findall(r"^(\S+(?:\{.*\})?) (\d+)$", text, re.M)}


def ready(server):
    try:
        return urllib.request.urlopen(f"{server.url}/ready").status
    except urllib.error.HTTPError as answer:
        return answer.code


def pairs(place):
    found = records_at(str(place), TASK)
    assert len(found.reports) == 0
    assert len(np.unique(found.tokens)) == len(found.tokens), "a token counts twice"
    return set(zip(found.tokens.tolist(), found.paired.tolist(), strict=True))


class Crowd:
    """People with tokens, what each sent and what was answered."""

    def __init__(self, server, person, made):
        self.server, self.person, self.made = server, person, made
        self.accepted, self.answers, self.rng = {}, [], np.random.default_rng(1)

    def send(self, token, body=None):
        body = body or self.rng.bytes(8)
        status = self.person.send(body, token)
        self.answers.append(status)
        if status == 201:
            number, report = self.made.read(token), int.from_bytes(body, "big")
            assert self.accepted.setdefault(number, report) == report, "a token was good twice"
        return status

    def check(self, place):
        held = pairs(place)
        assert held == set(self.accepted.items())
        counts = metrics(self.server)
        assert counts["riata_reports"] == len(held)
        assert counts['riata_errors_total{reason="no_room"}'] == self.answers.count(507)
        assert counts['riata_errors_total{reason="store"}'] == self.answers.count(503)
        assert counts["riata_refused_total"] == self.answers.count(400)


def fill_up(crowd, place, most):
    """New tokens until there is no room, each of those refused with many reports."""
    for token in crowd.made.make(most):
        if crowd.send(token) != 201:
            first = crowd.rng.bytes(8)
            statuses = [crowd.send(token, body) for body in (first, None, None, first)]
            assert set(statuses) <= {507, 503, 400, 201}
            crowd.check(place)
            if crowd.answers.count(507) + crowd.answers.count(503) > 30:
                return
    pytest.fail("there is room without end")


needs_mount = pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("mount"), reason="mounts a small disk"
)
kinds = pytest.mark.parametrize("kind", ["directory", "sqlite"])


@needs_mount
@kinds
@pytest.mark.parametrize("room", [0, 20_000])
def test_a_token_counts_once_on_a_disk_that_is_full(serve, disk, kind, room):
    place = place_of(kind, disk)
    crowd = serve(place)
    assert ready(crowd.server) == 200
    for token in crowd.made.make(20):
        assert crowd.send(token) == 201
    fill(disk, room)
    assert metrics(crowd.server)["riata_disk_free_bytes"] <= room
    fill_up(crowd, place, 5000)
    assert ready(crowd.server) == 503
    evil, before = crowd.made.make(1)[0], len(crowd.accepted)
    for _ in range(200):
        crowd.send(evil)
    assert len(crowd.accepted) <= before + 1
    crowd.check(place)
    (disk / "ballast").unlink()
    assert ready(crowd.server) == 200
    crowd.send(evil)
    assert crowd.made.read(evil) in crowd.accepted
    assert [crowd.send(evil) for _ in range(3)] == [400] * 3
    crowd.check(place)
    crowd.server.stop()
    assert pairs(place) == set(crowd.accepted.items())


@kinds
def test_a_token_counts_once_in_files_that_may_not_grow(serve, tmp_path, kind):
    limit, place = 30_000 if kind == "directory" else 70_000, place_of(kind, tmp_path)
    crowd = serve(place, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    fill_up(crowd, place, 5000)
    crowd.check(place)
    assert ready(crowd.server) == 503
    crowd.server.stop()
    assert pairs(place) == set(crowd.accepted.items())


@needs_mount
@kinds
def test_a_disk_that_cannot_be_written_is_not_ready(serve, disk, kind):
    crowd = serve(place_of(kind, disk), tokens=False)
    assert crowd.person.send(bytes(8)) == 201
    assert ready(crowd.server) == 200
    fill(disk)
    assert ready(crowd.server) == 503
    assert urllib.request.urlopen(f"{crowd.server.url}/health").status == 200
    (disk / "ballast").unlink()
    assert ready(crowd.server) == 200
    assert crowd.person.send(b"12345678") == 201
    assert metrics(crowd.server)["riata_reports"] == 2
    crowd.server.stop()


@pytest.fixture
def synced(monkeypatch):
    """The size of each file when it was last made durable."""
    sizes, real = {}, os.fsync

    def note(file):
        real(file)
        sizes[os.path.basename(os.readlink(f"/proc/self/fd/{file}"))] = os.fstat(file).st_size

    monkeypatch.setattr(os, "fsync", note)
    return sizes


def test_what_is_accepted_is_synced_and_so_is_what_is_found(tmp_path, synced):
    store = DirectoryStore(tmp_path, TASK)
    for i in range(3):
        store.add(words(i), words(i))
        assert synced["00000001.pairs"] == (tmp_path / "00000001.pairs").stat().st_size > 0
        store.add(words(10 + i))
        assert synced["00000001.reports"] == (tmp_path / "00000001.reports").stat().st_size > 0
    store.close()
    synced.clear()
    DirectoryStore(tmp_path, TASK).close()  # another process may have been killed before its sync
    for name in ("00000001.pairs", "00000001.reports"):
        assert synced[name] == (tmp_path / name).stat().st_size > 0


def test_a_torn_frame_before_an_empty_file_is_of_a_crash(tmp_path):
    store = DirectoryStore(tmp_path, TASK)
    store.add(words(1), words(1))
    store.add(words(2), words(2))
    store.close()
    (tmp_path / "00000002.pairs").touch()  # a new file could be made and not be used
    file = tmp_path / "00000001.pairs"
    file.write_bytes(file.read_bytes()[:-3])
    again = DirectoryStore(tmp_path, TASK)
    assert len(again) == 1
    assert again.add(words(9, 3), words(1, 2)).tolist() == [False, True]
    again.close()
    assert pairs(tmp_path) == {(1, 1), (2, 3)}
