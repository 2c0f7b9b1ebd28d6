"""A process that dies leaves its charge behind."""

import signal
import subprocess
import sys

import pytest

from riata import Budget, Ledger

from helpers import processes

pytestmark = pytest.mark.long

FIT = """
import sys
import numpy as np
from riata import Bounds, Ledger, PrivateLasso
from riata.engines import LocalEngine

def read(self, *args, **options):
    print("reading", flush=True)
    sys.stdin.read()

LocalEngine.__init__ = read
ledger = Ledger.open(sys.argv[1])
PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), ledger=ledger).fit(np.ones((9, 2)), np.ones(9))
"""


def test_a_fit_killed_while_reading_rows_has_been_charged(tmp_path):
    path = tmp_path / "study.db"
    Ledger.create(path, dataset="d", ceiling=Budget(20.0, 1e-6))
    for fits in (1, 2):
        with subprocess.Popen(
            [sys.executable, "-c", FIT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout.readline() == b"reading\n"
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(Ledger.open(path).charges) == fits


def test_no_release_outlives_its_charge_when_processes_are_killed(tmp_path):
    found = processes("kill", tmp_path, 60, 1, "sound")
    assert found["lost"] == 0
    assert found["charged"] >= found["released"] > 0


@pytest.mark.slow
def test_no_release_outlives_its_charge_in_a_thousand_kills(tmp_path):
    found = processes("kill", tmp_path, 1000, 2, "sound")
    assert found["lost"] == 0
    assert found["charged"] >= found["released"] > 0
    assert found["ahead"] > 0  # some kills fell between the database and the head


def test_the_kills_would_find_a_release_before_its_charge(tmp_path):
    assert processes("kill", tmp_path, 30, 3, "broken")["lost"] > 0


def test_a_process_may_die_at_every_step_of_a_charge(tmp_path):
    found = processes("crash", tmp_path)
    died = {point: rest for point, (code, *rest) in found.items() if code == -signal.SIGKILL}
    assert len(died) >= 8
    # [what was charged, how far the database is ahead of the head]
    assert died["while the head is written, call 1"] == [0, 0]
    assert died["while the head is written, call 2"] == [1, 1]
    assert died["before the head is replaced, call 2"] == [1, 1]
    assert died["after the head is replaced, call 2"] == [1, 0]
    assert all(rest in ([0, 0], [1, 1], [1, 0]) for rest in died.values())
