"""Which task files are opened and which refused: one list for Python and JavaScript.

The same list is read by tests/services/test_tasks_in_node.py. What a report of an accepted task
costs is computed here once more, from the formulas of docs/privacy/channel.md in 100 digits.
"""

import collections
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
from task_files import VECTORS, damaged, vectors

from riata.errors import TaskError
from riata.local import Task, channel_limits
from riata.local.channel import channel
from riata.local.kinds import KINDS
from riata.local.task import MOST_BYTES
from riata.local.task_fields import TaskFields


def exact_cost(task, name):
    """Theorem 8 of docs/privacy/channel.md, with nothing of riata's own arithmetic."""
    with mpmath.workdps(100):
        question, seeds = task.table()["arms"][name], task.question(name).seeds
        k, m, t = question["degree"], question["size"], mpmath.mpf(question["threshold"])
        q = mpmath.mpf(int(question["coin"], 16)) / 2**64
        surely = k * mpmath.erfc(t / mpmath.sqrt(2)) / 2
        lattice = mpmath.mpf(3) / 4 * k * (m + 3) / 2**32
        rounding = mpmath.mpf(2) / 5 * k * (mpmath.sqrt(m) / 2**36 + mpmath.sqrt(m) ** 3 / 2**48)
        blocks = seeds * (math.ceil(m / 4) + 1) + 2**48
        inputs = task.vector_size + (name == "joint")
        bits = (64 * inputs + 701) * mpmath.log(2) + mpmath.mpf(blocks) ** 2 / 2**128
        spread = mpmath.sqrt(bits * -(-(2**64) // seeds) / 2**65)
        o = (lattice + rounding + spread) / (surely + q * (1 - surely))
        return -mpmath.log(q) + mpmath.log((1 + o) / (1 - o))


@pytest.mark.long
def test_python_decides_as_the_list_says_and_no_task_costs_more_than_it_states():
    found = collections.Counter()
    for raw, expect, wanted in vectors():
        found[expect] += 1
        try:
            task = Task.read(raw)
        except TaskError:
            assert expect == "refused", raw[:2000]
            continue
        complete = json.loads(raw, parse_int=float) == task.table()
        assert expect == ("accepted" if complete else "incomplete"), raw[:2000]
        assert wanted == (task.id if complete else "")
        assert all(exact_cost(task, name) <= task.epsilon for name in task.shares)
    assert found["refused"] > 5000
    assert found["accepted"] > 1000
    assert found["incomplete"] > 100


def test_the_list_holds_every_field_of_every_kind():
    held = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert {json.loads(text)["kind"] for text in held["bases"].values()} == set(KINDS)
    refused = {raw for raw, expect, _ in vectors() if expect != "accepted"}
    for name, text in held["bases"].items():
        table = json.loads(text)
        for field in table:  # missing, alone
            without = {key: value for key, value in table.items() if key != field}
            spelt = json.dumps(without, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert spelt.encode() in refused, (name, field)


@pytest.mark.slow
def test_the_list_can_be_written_again():
    tool = Path(__file__).parents[2] / "tools/task_vectors.py"
    ran = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.not_quick
def test_no_random_damage_makes_a_task_that_costs_more_than_it_states():
    opened = 0
    for raw in damaged(7, 600):
        try:
            task = Task.read(raw)
        except TaskError:
            continue
        opened += 1
        assert all(exact_cost(task, name) <= task.epsilon for name in task.shares)
    assert 150 < opened < 500


def test_the_operations_of_the_limits_are_as_exact_as_they_say():
    with mpmath.workdps(50):
        for i in range(601):
            t = i / 100
            assert abs(channel_limits.tail(t) - mpmath.ncdf(-mpmath.mpf(t))) < 1e-14
            x = 3 * t
            assert abs(channel_limits.exp_minus(x) * mpmath.exp(mpmath.mpf(x)) - 1) < 1e-13


def test_the_best_channel_is_within_its_own_limits():
    rng = random.Random(3)
    for _ in range(200):
        degree, size = rng.choice([1, 2]), round(2 ** rng.uniform(1, 12))
        epsilon, seeds = 2 ** rng.uniform(-4, 4), round(2 ** rng.uniform(60, 64))
        best = channel(degree, size, epsilon, seeds, size - 1)
        shape = (epsilon, seeds, size - 1)
        assert channel_limits.broken_limit(degree, size, best.threshold, best.coin, *shape) == ""
        assert (
            channel_limits.broken_limit(degree, size, best.threshold, best.coin // 2, *shape)
            == "cost"
        )
        found = channel_limits.best_threshold(degree, best.coin / 2**64)
        assert abs(found - best.threshold) < 1.1e-6


def test_numbers_are_rounded_before_they_are_compared():
    # another language has only the rounded one
    assert TaskFields({"x": 10**60}).number("x") == 1e60
    assert TaskFields({"x": [-(10**60), 10**60]}).pair("x") == (-1e60, 1e60)
    for huge in (10**61, 10**400, -(10**400)):
        with pytest.raises(TaskError, match="field x"):
            TaskFields({"x": huge}).number("x")
        with pytest.raises(TaskError, match="field x"):
            TaskFields({"x": [0, huge]}).pair("x")


def test_minus_zero_is_zero():
    for zero in (-0.0, 0, 0.0):
        assert math.copysign(1.0, TaskFields({"x": zero}).number("x")) == 1.0
    feature = {"name": "x", "kind": "number", "bounds": [0, 1], "center": 0.0}
    made = [
        Task.from_table({"kind": "mean", "epsilon": 1.0, "features": [feature | {"center": zero}]})
        for zero in (-0.0, 0, 0.0)
    ]
    assert len({task.id for task in made}) == 1


def test_a_file_that_is_too_large_is_not_read():
    with pytest.raises(TaskError, match="bytes: at most"):
        Task.read(b" " * (MOST_BYTES + 1))
    with pytest.raises(TaskError, match="bytes: at most"):
        Task.read(" " * (MOST_BYTES + 1), toml=True)
