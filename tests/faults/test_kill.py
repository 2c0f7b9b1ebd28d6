"""A process that dies leaves its charge behind."""

import signal
import subprocess
import sys

from riata import Budget, Ledger

FIT = """
import sys
import numpy as np
from riata import Bounds, Ledger, PrivateLasso
from riata.engines import LocalEngine

def read(self, *args):
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
