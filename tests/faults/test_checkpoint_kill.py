"""Fits that are killed, or whose disk is full, again and again, and go on from their checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from riata import Budget, Ledger

from clusters import cluster

pytestmark = pytest.mark.long

#: Prints a line for each release that the solver sees, as soon as it sees it. Files grow to so many
#: bytes, from the first release on. With an address, the rows are at the workers of a cluster.
FIT = """
import resource
import sys
import numpy as np
from riata import Bounds, Ledger, PrivateLasso
from riata.curator import Curator

folder, limit, address = sys.argv[1:]
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4_000, 40))
y = 0.5 * X[:, 4] + 0.1 * rng.standard_normal(len(X))
release = Curator.release

def told(self, *query):
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    found = release(self, *query)
    print(np.asarray(found).tolist(), flush=True)
    return found

Curator.release = told
if address:
    from distributed import Client
    client = Client(address, direct_to_workers=True)
print("begun", flush=True)
model = PrivateLasso(
    1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=60,
    engine="dask" if address else "scan",
    ledger=Ledger.open(folder + "/ledger.db"),
)
model.fit(X, y, checkpoint=folder + "/fit")
np.save(folder + "/coef.npy", model.coef_)
"""


def command(folder, limit=0, address=""):
    return [sys.executable, "-c", FIT, str(folder), str(limit), address]


def killed_until_it_is_over(folder, kills, seed, address=""):
    """What each life of the fit printed."""
    rng = np.random.default_rng(seed)
    Ledger.create(folder / "ledger.db", dataset="d", ceiling=Budget(1.1, 1e-6))
    lives, lines = [], 0
    while not (folder / "coef.npy").exists():
        with subprocess.Popen(
            command(folder, address=address), stdout=subprocess.PIPE, text=True
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
@pytest.mark.filterwarnings("ignore")  # of the cluster
def test_a_cluster_outlives_a_fit_that_is_killed_and_the_fit_goes_on(tmp_path):
    with cluster() as client:
        lives = killed_until_it_is_over(tmp_path, 2, 1, client.scheduler.address)
    assert check(tmp_path, lives) >= 1


def test_a_fit_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path):
    Ledger.create(tmp_path / "ledger.db", dataset="d", ceiling=Budget(1.1, 1e-6))
    lives = []
    for limit in (2_000, 6_000, 10**9):
        done = subprocess.run(command(tmp_path, limit), capture_output=True, text=True)
        lives.append(done.stdout.splitlines(True)[1:])
        assert done.returncode == (1 if limit < 10**9 else 0)
        assert ("CheckpointError" in done.stderr) == (limit < 10**9)
        assert (tmp_path / "fit").stat().st_size <= limit
    assert [len(life) for life in lives] == sorted(len(life) for life in lives)
    assert 0 < len(lives[1]) < 120
    assert check(tmp_path, lives) >= 1


@pytest.mark.slow
def test_a_fit_that_is_killed_a_hundred_times_goes_on(tmp_path):
    midway = 0
    for study in range(20):
        folder = tmp_path / str(study)
        folder.mkdir()
        midway += check(folder, killed_until_it_is_over(folder, 5, seed=study))
    assert midway >= 20


#: Kills fits of one study again and again, each life in a form of its own: prints what each saw.
STUDY = """
import json, os, random, signal, sys, time
import numpy as np
from scipy import sparse
from riata import Bounds, Budget, Ledger, PrivateLasso
from riata.curator import Curator

folder, kills, seed, address = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
chance = random.Random(seed)
rng = np.random.default_rng(0)
X = np.round(rng.uniform(-1, 1, (300, 12)) * (rng.random((300, 12)) < 0.5), 3)
y = np.round(0.5 * X[:, 4] + 0.1 * rng.standard_normal(len(X)), 3)
FORMS = [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
Ledger.create(folder + "/ledger.db", dataset="d", ceiling=Budget(1.1, 1e-6))
release = Curator.release

def live(engine, form, out):
    def shown(self, *query):
        found = release(self, *query)
        os.write(out, (json.dumps(np.asarray(found).tolist()) + "\\n").encode())
        return found
    Curator.release = shown
    if engine == "dask":
        from distributed import Client
        client = Client(address, direct_to_workers=True)
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=20,
                         engine=engine, ledger=Ledger.open(folder + "/ledger.db"))
    model.fit(form(X), y, checkpoint=folder + "/fit")
    os.write(out, b"over\\n")
    os._exit(0)

def life(kill):
    engine = "dask" if address else chance.choice(["numpy", "scan", "disk", "auto"])
    form = chance.choice(FORMS)
    into, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(into)
        live(engine, form, out)
    os.close(out)
    with os.fdopen(into, "rb") as lines:
        seen = []
        if kill:
            wanted = chance.randrange(0, 30)
            while len(seen) < wanted and (line := lines.readline()):
                seen.append(line)
            if not seen:
                time.sleep(chance.uniform(0, 0.2))
            os.kill(pid, signal.SIGKILL)
        seen += lines.readlines()
    os.waitpid(pid, 0)
    return [line.decode() for line in seen if line.endswith(b"\\n")]

lives = [life(k < kills) for k in range(kills + 1)]
print(json.dumps({"lives": lives, "charges": len(Ledger.open(folder + "/ledger.db").charges)}))
"""


def assert_one_answer_each(folder, kills, seed, address=""):
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", STUDY, str(folder), str(kills), str(seed), address],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["charges"] == 1
    *answers, over = found["lives"][-1]
    assert over == "over\n"
    assert len(answers) == 40  # a selection and an intercept for each of 20 steps
    for life in found["lives"]:
        assert life == [*answers, "over\n"][: len(life)]
    return sum(0 < len(life) < 41 for life in found["lives"])


def test_a_fit_that_goes_on_in_other_engines_and_containers_gives_the_same_answers(tmp_path):
    assert assert_one_answer_each(tmp_path / "study", 6, seed=1) >= 2


@pytest.mark.slow
def test_a_thousand_kills_in_memory_on_disk_and_at_a_cluster(tmp_path):
    midway = sum(assert_one_answer_each(tmp_path / f"{s}", 45, seed=s) for s in range(20))
    with cluster() as client:
        address = client.scheduler.address
        midway += sum(
            assert_one_answer_each(tmp_path / f"dask {s}", 10, s, address) for s in range(10)
        )
    assert midway >= 300
