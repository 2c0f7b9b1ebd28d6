"""Fits that are killed again and again, and go on from their checkpoint."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from riata import Budget, Ledger

#: Prints a line for each release that the solver sees, as soon as it sees it.
FIT = """
import sys
import numpy as np
from riata import Bounds, Ledger, PrivateLasso
from riata.curator import Curator

folder = sys.argv[1]
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4_000, 40))
y = 0.5 * X[:, 4] + 0.1 * rng.standard_normal(len(X))
release = Curator.release

def told(self, *query):
    found = release(self, *query)
    print(np.asarray(found).tolist(), flush=True)
    return found

Curator.release = told
print("begun", flush=True)
model = PrivateLasso(
    1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=60, engine="scan",
    ledger=Ledger.open(folder + "/ledger.db"),
)
model.fit(X, y, checkpoint=folder + "/fit")
np.save(folder + "/coef.npy", model.coef_)
"""


def killed_until_it_is_over(folder, kills, seed):
    """What each life of the fit printed."""
    rng = np.random.default_rng(seed)
    Ledger.create(folder / "ledger.db", dataset="d", ceiling=Budget(1.1, 1e-6))
    lives, lines = [], 0
    while not (folder / "coef.npy").exists():
        with subprocess.Popen(
            [sys.executable, "-c", FIT, str(folder)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout.readline() == "begun\n"
            seen = []
            if len(lives) < kills:
                seen = [child.stdout.readline() for _ in range(rng.integers(0, 50))]
                time.sleep(rng.uniform(0.0, 0.01))
                child.kill()
            lives.append([*seen, *child.stdout.read().splitlines(True)])
            assert child.wait() == (0 if (folder / "coef.npy").exists() else -9)
        written = (folder / "fit").read_bytes().splitlines() if (folder / "fit").exists() else []
        assert len(written) >= lines
        lines = len(written)
    return lives


def check(folder, lives):
    last = lives[-1]
    assert len(last) == 120  # a selection and an intercept for each of 60 steps
    for life in lives:
        whole = life[:-1]  # the kill may have cut the last line
        assert whole == last[: len(whole)]  # nothing that was seen is ever released anew
    ledger = Ledger.open(folder / "ledger.db")
    assert len(ledger.charges) == 1
    assert not (folder / "fit.key").exists()
    return sum(1 for life in lives[:-1] if len(life) > 1)


def test_a_fit_that_is_killed_goes_on(tmp_path):
    lives = killed_until_it_is_over(tmp_path, 2, seed=1)
    assert check(tmp_path, lives) >= 1


@pytest.mark.slow
def test_a_fit_that_is_killed_a_hundred_times_goes_on(tmp_path):
    midway = 0
    for study in range(20):
        folder = tmp_path / str(study)
        folder.mkdir()
        midway += check(folder, killed_until_it_is_over(folder, 5, seed=study))
    assert midway >= 20
