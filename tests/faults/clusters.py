"""A Dask cluster of two worker processes for tests."""

from __future__ import annotations

import os
import signal
import warnings
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

LEAN = {
    "distributed.comm.compression": None,
    "distributed.worker.profile.enabled": False,
    "logging.distributed": "critical",
}


@contextmanager
def cluster(workers=2):
    """A client, the current one, of so many processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            dask.config.set(LEAN),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="localhost:0",
                silence_logs=50,
            ) as made,
            Client(made, direct_to_workers=True) as client,
        ):
            yield client


def kill_a_worker(client):
    """SIGKILL to the process of one worker."""
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)
