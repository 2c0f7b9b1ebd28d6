"""What the fault tests share: processes that are killed, and what is left of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from riata import Bounds, Budget, Ledger, PrivateLasso
from riata.privacy.events import Pure

#: At delta = 0 the cost of pure events is their plain sum.
PLAIN = Budget(2.0, 0.0)


def processes(command, *arguments, timeout=3600):
    """What a command of processes.py printed."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("processes.py"), command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def make(path, ceiling=PLAIN, **places):
    return Ledger.create(path, dataset="claims", ceiling=ceiling, **places)


def charge(ledger, epsilon=0.1, **summary):
    return ledger.charge(Pure(epsilon), adjacency="replace-one", summary=summary)


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3))
    return X, 0.5 * X[:, 0]


def lasso(ledger, epsilon=0.1):
    return PrivateLasso(epsilon, 1e-6, bounds=Bounds(1.0, 1.0), steps=2, ledger=ledger)
