"""A disk that is full, locked or damaged: nothing is spent, and nothing is lost."""

import errno
import os
import random
import tempfile
from pathlib import Path

import pytest

from riata import Ledger
from riata.errors import LedgerError

from helpers import charge, make, processes

GRANTED, REFUSED = 10, 12


def test_a_full_disk_charges_and_releases_nothing(tmp_path):
    limits = [0, 1, 100, 250, 300, 1000, *range(2048, 40_000, 2048), 1_000_000]
    found = processes("full", tmp_path, *limits)
    assert len(found) == len(limits)
    assert all(case in ([GRANTED, 1], [REFUSED, 0]) for case in found.values())
    assert found["0"] == found["4096"] == [REFUSED, 0]
    assert found["1000000"] == [GRANTED, 1]


@pytest.mark.long
def test_what_may_not_be_written_or_read_charges_nothing():
    with tempfile.TemporaryDirectory() as folder:  # pytest's folders are closed to other users
        Path(folder).chmod(0o755)
        found = processes("locked", folder)
    assert found.pop("open") == [GRANTED, 1]
    assert found == {case: [REFUSED, 0] for case in ("file", "folder", "head", "head folder")}


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_a_head_that_cannot_be_made_durable_stops_the_release(tmp_path, monkeypatch, call):
    ledger = make(tmp_path / "study.db")
    charge(ledger)
    real, calls = os.fsync, []

    def failing(file):
        calls.append(1)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(LedgerError, match="No space left"):
            charge(ledger)
    # the first two syncs come before the charge, the others after it: charged and not released
    assert ledger.verify().charges == (1 if call <= 2 else 2)
    charge(ledger)


def three_charges(path):
    ledger = make(path)
    for _ in range(3):
        charge(ledger, note="x" * 3500)  # so that the pages are full
    return ledger.charges


def outcome(path):
    """What the ledger says, or None if it refuses."""
    try:
        return Ledger.open(path).charges
    except LedgerError:
        return None


def test_damaged_bytes_are_refused_or_harmless(tmp_path):
    path = tmp_path / "study.db"
    charges = three_charges(path)
    whole, rng, refused = path.read_bytes(), random.Random(4), 0
    for _ in range(150):
        damaged, at = bytearray(whole), rng.randrange(len(whole) - 8)
        damaged[at : at + 8] = rng.randbytes(8)
        path.write_bytes(damaged)
        found = outcome(path)
        assert found in (None, charges)
        refused += found is None
        Path(f"{path}-journal").unlink(missing_ok=True)
    assert refused > 30  # much of the file is room in its indexes
    path.write_bytes(whole)
    assert outcome(path) == charges


def test_a_shortened_file_is_refused(tmp_path):
    path = tmp_path / "study.db"
    three_charges(path)
    whole = path.read_bytes()
    for size in (0, 1, 99, 100, 4095, 4096, 8192, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert outcome(path) is None, size


def test_a_damaged_head_is_refused(tmp_path):
    path = tmp_path / "study.db"
    charges = three_charges(path)
    head = tmp_path / "study.db.head"
    whole, refused = head.read_bytes(), 0
    for at in range(len(whole)):
        for new in (b"0", b"\xff", b" "):
            head.write_bytes(whole[:at] + new + whole[at + 1 :])
            found = outcome(path)
            assert found in (None, charges)
            refused += found is None
    assert refused > 400
    for size in range(0, len(whole) - 3, 7):
        head.write_bytes(whole[:size])
        assert outcome(path) is None
