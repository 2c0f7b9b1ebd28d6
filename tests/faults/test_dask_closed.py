"""The Dask cluster that riata starts: strangers on the machine get nowhere, and find no files.

Each attack is also made on a cluster without keys, where it must succeed.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from distributed import Client

from riata import Bounds
from riata.engines import cluster as cluster_module
from riata.engines.dask import DaskEngine, InMemory
from riata.engines.shard import Shard
from riata.losses import Squared
from riata.preparation import Preparation
from riata.problem import Problem
from riata.queries import Gradient
from riata.sets import L1Ball
from riata.vectors import Vector

from clusters import cluster

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # of the cluster
]

#: Nobody, if we may become them, and always ourselves.
UIDS = [os.getuid(), *([65534] if os.getuid() == 0 else [])]
UNIT = Bounds(1.0, 1.0)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 6))
Y = X[:, 0] / 2


def listening(pids):
    """Every port of these processes that somebody could connect to."""
    return {
        (each.laddr.ip, each.laddr.port)
        for pid in pids
        for each in psutil.Process(pid).net_connections("inet")
        if each.status in (psutil.CONN_LISTEN, psutil.CONN_NONE)
    }


@pytest.fixture(scope="module")
def own():
    """The cluster that a fit starts, the ports that were open before, and rows at its workers."""
    before = listening([os.getpid()])
    client = cluster_module._own()
    rows = [InMemory(X[:200], Y[:200]), InMemory(X[200:], Y[200:])]
    engine = DaskEngine(rows, Preparation(UNIT), client)
    yield client, before, engine
    folder = folder_of(client)
    cluster_module._close(client, client.cluster, folder)
    assert not Path(folder).exists()


def folder_of(client):
    places = client.run(lambda dask_worker: dask_worker.local_directory)
    return str(Path(next(iter(places.values()))).parent.parent)


def addresses(client):
    workers = client.scheduler_info(n_workers=-1)["workers"]
    nannies = [worker["nanny"] for worker in workers.values()]
    return [client.scheduler.address, *workers, *nannies]


def attack(uid, *where, **options):
    """The addresses and the ways in that led somewhere."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("stranger.py"), str(uid), *where],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
        env=os.environ | options,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("uid", UIDS)
def test_strangers_get_nowhere(uid, own):
    client, _, _ = own
    assert len(addresses(client)) == 1 + 2 * len(client.nthreads())
    assert attack(uid, *addresses(client)) == []


@pytest.mark.parametrize("uid", UIDS)
def test_the_same_attacks_work_on_a_cluster_without_keys(uid):
    with cluster(1) as client:
        scheduler, worker, nanny = addresses(client)
        page = client.cluster.dashboard_link.rsplit("/", 1)[0]
        for where, ways in (
            (scheduler, ["identity, no key", "run_on_scheduler, no key"]),
            (scheduler, ["join_as_client, no key"]),
            (worker, ["identity, no key", "run_code, no key"]),
            (nanny, ["identity, no key", "run_code, no key"]),
            (page, ["plain_http"]),
        ):
            found = attack(uid, where, PATIENCE="60", WAYS="; ".join(ways))
            assert [way for _, way in found] == ways


def test_those_with_the_key_are_served(own):
    client, _, engine = own
    query = Gradient(Problem(Squared(), L1Ball(1.0), UNIT, len(X), 6), Vector.unit(6, 1, 0.5))
    expected = Shard(*Preparation(UNIT)(X, Y)).total(query)
    np.testing.assert_array_equal(engine.total(query), expected)
    with Client(
        client.scheduler.address, security=client.security, set_as_default=False
    ) as another:
        assert len(another.run(os.getpid)) == len(client.nthreads())


def test_nothing_else_listens(own):
    """No dashboard, and no HTTP server of scheduler, workers or nannies."""
    client, before, _ = own
    pids = [os.getpid(), *client.run(os.getpid).values()]
    known = {tuple(each.split("://")[1].rsplit(":", 1)) for each in addresses(client)}
    assert listening(pids) - before == {(ip, int(port)) for ip, port in known}
    assert {ip for ip, _ in known} == {"127.0.0.1"}
    assert all(each.startswith("tls://") for each in addresses(client))


def test_files_of_workers_are_closed_and_have_no_rows(own):
    client, _, _ = own
    folder = Path(folder_of(client))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("target", "spill"):
        option = f"distributed.worker.memory.{name}"
        assert set(client.run(dask.config.get, option).values()) == {False}
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert not any(each.stat().st_size > 100 for each in files)  # locks, and nothing else


def test_keys_are_in_memory_alone(own):
    client, _, _ = own
    secret = client.security.tls_worker_key
    line = secret.splitlines()[1].encode()
    assert "PRIVATE KEY" in secret
    for pid in client.run(os.getpid).values():
        for name in ("cmdline", "environ"):
            assert line not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert secret not in repr(client.security)


def test_a_second_fit_uses_the_same_cluster(own):
    assert cluster_module._own() is own[0]
    assert cluster_module.current_client() is own[0]
