"""The device's JavaScript opens the tasks that Python opens, and refuses all others."""

import base64
import json

import pytest
from task_files import damaged, decision, vectors
from test_collect_in_node import node

from riata.local import Task

pytestmark = pytest.mark.services

RANDOM = 20_000


def decisions(files, folder):
    """The id of each task that JavaScript opens, and "" for each other."""
    given = [base64.b64encode(raw).decode() for raw in files]
    return json.loads(node("decide", given, folder))


def test_node_decides_as_the_list_says(tmp_path):
    files, expected, ids = zip(*vectors(), strict=True)
    found = decisions(files, tmp_path)
    different = [
        (raw[:2000], expect, theirs)
        for raw, expect, ours, theirs in zip(files, expected, ids, found, strict=True)
        if ours != theirs
    ]
    assert different == []
    assert sum(map(bool, found)) > 1000


def test_node_and_python_decide_alike_about_random_damage(tmp_path):
    files = list(damaged(20, RANDOM))
    ours = [decision(raw) for raw in files]
    theirs = decisions(files, tmp_path)
    different = [(f, a, b) for f, a, b in zip(files, ours, theirs, strict=True) if a != b]
    assert different == []
    assert RANDOM // 5 < sum(map(bool, ours)) < RANDOM * 4 // 5


def test_a_task_that_costs_twice_what_it_states_is_refused(tmp_path):
    feature = {"name": "v", "kind": "number", "bounds": [-1, 1]}
    target = feature | {"name": "y"}
    table = Task.from_table(
        {
            "kind": "linear",
            "epsilon": 4.0,
            "features": [feature],
            "target": target,
            "arms": {"gram": 0.5, "cross": 0.5},
        }
    ).table()
    good = json.dumps(table).encode()
    table["target"]["weight"] = 1e6
    longer = json.dumps(table).encode()
    table["arms"]["cross"] |= {"threshold": 3.2, "share": 1 - 1e-12}
    table["arms"]["gram"]["share"] = 1e-12
    costly = json.dumps(table).encode()
    found = decisions([good, longer, costly], tmp_path)
    assert found == [Task.read(good).id, "", ""]
