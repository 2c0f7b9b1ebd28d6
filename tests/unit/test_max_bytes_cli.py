"""The commands that read models and shards pass on how much memory these may take."""

import numpy as np
import pytest

import riata
from riata.local import Aggregator, Task

TASK = {
    "kind": "mean",
    "epsilon": 1.0,
    "features": [{"name": "h", "kind": "number", "bounds": [0, 24]}],
}


@pytest.fixture
def model(tmp_path):
    fitted = riata.PrivateLasso(1.0, 1e-6, bounds=riata.Bounds(1.0, 1.0), steps=2)
    riata.save(fitted.fit(np.zeros((60, 3)), np.zeros(60)), tmp_path / "m.riata")
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))
    return tmp_path / "m.riata"


def test_predict_and_report_keep_to_the_limit(model, riata_command, tmp_path):
    commands = (
        ("predict", model, "--data", tmp_path / "x.npy", "--out", tmp_path / "y.npy"),
        ("report", model, "--out", tmp_path / "r.html"),
    )
    for command in commands:
        done = riata_command(*command, "--max-bytes", 1000)
        assert done.code != 0
        assert "max_bytes=1000" in "".join(done.err.split())
        assert riata_command(*command, "--max-bytes", 2**24).code == 0


def test_learn_keeps_to_the_limit(riata_command, tmp_path):
    task = Task.from_table(TASK)
    task.save(tmp_path / "task.json")
    seeds = np.arange(500, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    Aggregator(task, expected=1000).add(seeds).save(tmp_path / "shard")
    command = ("collect", "learn", tmp_path / "task.json", "--shard", tmp_path / "shard")
    done = riata_command(*command, "--max-bytes", 1000)
    assert done.code != 0
    assert "max_bytes=1000" in "".join(done.err.split())
    assert riata_command(*command, "--max-bytes", 2**24).code == 0
