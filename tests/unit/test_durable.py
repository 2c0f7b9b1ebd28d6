"""Files that survive a crash are whole or not there, and one process at a time has their lock."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from riata.files import durable

HOLD = """
import os, sys
from riata.files import durable
print(durable.lock(os.open(sys.argv[1], os.O_RDWR)), flush=True)
sys.stdin.read()
"""


def test_a_new_file_is_for_its_owner_alone_and_never_takes_the_place_of_another(tmp_path):
    path = tmp_path / "key"
    durable.create(path, b"a\nb")
    assert path.read_bytes() == b"a\nb"
    assert os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        durable.create(path, b"other")
    assert path.read_bytes() == b"a\nb"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_no_new_one(tmp_path, monkeypatch, failing):
    path = tmp_path / "head"
    durable.create(path, b"old")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(OSError, match="No space"):
            durable.replace(path, b"new")
    assert path.read_bytes() == b"old"
    durable.replace(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["head"]
    assert path.read_bytes() == b"new"


def test_a_lock_ends_with_the_process_that_has_it(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    with open(path, "r+b") as file:
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout.readline().strip() == b"True"
            assert not durable.lock(file.fileno())
            other.kill()
        assert durable.lock(file.fileno())
        assert path.read_bytes() == b""
