"""A model that was learned from reports comes back as it was, and a changed file is refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import riata
from riata.errors import ModelFileError
from riata.local import Aggregator, Task
from riata.local.play import play
from riata.mechanisms.noise import Noise

FEATURES = [
    {"name": "hours", "kind": "number", "bounds": [0, 24]},
    {"name": "town", "kind": "choice", "choices": ["a", "ü"]},
]
NUMBER = {"name": "y", "kind": "number", "bounds": [0, 10]}
KINDS = {
    "mean": {},
    "sparse-mean": {},
    "linear": {"target": NUMBER},
    "lasso": {"target": NUMBER, "intercept": 0.0},
    "sparse-linear": {"target": NUMBER},
    "logistic": {"target": {"name": "y", "kind": "yes-no"}},
    "kernel": {"target": NUMBER, "kernel": {"width": 1.0, "pairs": 4}},
}


def learned(kind, n=3000):
    table = {"kind": kind, "epsilon": 4.0, "title": "Straße", "features": FEATURES}
    task = Task.from_table(table | KINDS[kind])
    rng = np.random.default_rng(1)
    hours = rng.uniform(0, 24, max(n, 1))
    rows = np.stack([task.encoding.encode({"hours": h, "town": "a"}) for h in hours])
    targets = None if task.target is None else hours / 12 - 1
    return Aggregator(task).add(play(task, rows, targets, Noise(1))[:n]).solve()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 3000])
def test_a_learned_model_comes_back(kind, n, tmp_path):
    model, path = learned(kind, n), tmp_path / "model.riata"
    riata.save(model, path)
    again = riata.load(path)
    assert type(again) is type(model)
    assert again.task == model.task
    assert (again.reports, again.signal, again.offset) == (
        model.reports,
        model.signal,
        model.offset,
    )
    assert again.evidence == model.evidence
    assert np.array_equal(again.theta, model.theta)
    assert np.array_equal(again.theta_errors, model.theta_errors)
    assert again.privacy == model.privacy
    assert str(again) == str(model)
    riata.save(again, tmp_path / "again.riata")
    assert (tmp_path / "again.riata").read_bytes() == path.read_bytes()
    if model.task.target is not None:
        rows = [{"hours": 3, "town": "ü"}, {}]
        assert np.array_equal(again.predict(rows), model.predict(rows))
        columns = {"hours": [3, None], "town": ["ü", None]}
        assert np.allclose(model.predict(columns), model.predict(rows), rtol=0, atol=1e-12)


def edited(path, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = json.loads(members["model.json"])
    change(found)
    members["model.json"] = json.dumps(found).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(out.getvalue())


def another_task(found):
    table = json.loads(found["parameters"]["task"])
    table["cap"] = 2
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found["parameters"]["task"] = text


CHANGES = {
    "epsilon of the Statement": lambda f: f["statement"].update(epsilon=0.1),
    "another task": another_task,
    "no task": lambda f: f.update(parameters={}),
    "a task that is no text": lambda f: f.update(parameters={"task": 3}),
    "a task that is not canonical": lambda f: f["parameters"].update(
        task=" " + f["parameters"]["task"]
    ),
    "a missing number": lambda f: f["fitted"].pop("offset"),
    "one more": lambda f: f["fitted"].update(more=1),
    "negative reports": lambda f: f["fitted"].update(reports=-1),
    "another type": lambda f: f["fitted"].update(signal=1),
    "another size": lambda f: f["fitted"].update(theta={"array": ["<f8", [1]]}),
    "another estimator": lambda f: f.update(estimator="PrivateLasso"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_refused(change, tmp_path):
    path = tmp_path / "model.riata"
    riata.save(learned("linear", 100), path)
    edited(path, lambda found: None)
    riata.load(path)
    edited(path, CHANGES[change])
    with pytest.raises(ModelFileError):
        riata.load(path)
