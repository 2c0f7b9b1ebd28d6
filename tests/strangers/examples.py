"""Good files of every kind, for tests that spoil them."""

import json
import zipfile

import numpy as np
import pandas as pd

import riata
from riata import Bounds, Schema
from riata.local import Aggregator, Task
from riata.losses import Huber
from riata.model_file.archive import pack
from riata.projections import GaussianProjection
from riata.sets import GroupL1Ball, Polytope

N, P = 60, 6
SCHEMA = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 120], "center": 40},
        {"name": "ward", "kind": "choice", "choices": ["north", "south"]},
        {"name": "smokes", "kind": "yes-no"},
        {"name": "notes", "kind": "text", "buckets": 4},
    ],
    "target": {"name": "stay", "classes": ["short", "long", "other"]},
    "person": "patient",
    "rows_of_a_person": 2,
    "people": 30,
    "ignore": ["id", "day"],
    "ignore_others": True,
    "separator": ";",
}
WIDE_SCHEMA = {
    "features": {"count": P, "bound": 2.0, "nonnegative": True},
    "target": {"bounds": [0, 1]},
    "rows": 100,
}
_VECTOR = {"name": "x", "kind": "vector", "bounds": [-1, 1], "size": P}
_Y = {"name": "y", "kind": "number", "bounds": [-1, 1]}
TASKS = {
    "mean": {
        "kind": "mean",
        "epsilon": 1.0,
        "title": "Sleep",
        "deadline": "2040-01-31",
        "cap": 2,
        "features": [
            {"name": "hours", "kind": "number", "bounds": [0, 24], "question": "How long?"},
            {"name": "pet", "kind": "choice", "choices": ["cat", "dog"], "weight": 2.0},
            {"name": "happy", "kind": "yes-no"},
        ],
    },
    "linear": {"kind": "linear", "epsilon": 2.0, "features": [_VECTOR], "target": _Y},
    "sparse": {
        "kind": "sparse-linear",
        "epsilon": 2.0,
        "features": [{**_VECTOR, "size": 5000}],
        "target": _Y,
    },
    "kernel": {
        "kind": "kernel",
        "epsilon": 2.0,
        "features": [_VECTOR],
        "target": _Y,
        "kernel": {"width": 0.5, "pairs": 8},
    },
}
_CLASSES = np.array(["no", "yes"])


def _rows():
    rng = np.random.default_rng(7)
    return rng.uniform(-1, 1, (N, P)), rng.uniform(-1, 1, N)


def estimators():
    """An estimator of each kind, and some with more in them, by name."""
    box, length = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")
    each = Bounds(np.linspace(0.5, 1.5, P), 1.0)
    labels = {"classes": _CLASSES, "steps": 2}
    local = {"random_state": 1}
    return {
        "lasso": riata.PrivateLasso(1.0, 1e-6, bounds=box, steps=2),
        "lasso, bounds": riata.PrivateLasso(1.0, 1e-6, bounds=each, steps=2),
        "erm, groups": riata.PrivateErm(
            Huber(0.3), GroupL1Ball(["a", "b"] * 3), 1.0, 1e-6, bounds=box, steps=2
        ),
        "erm, polytope": riata.PrivateErm(
            Huber(0.3), Polytope(np.eye(P)), 1.0, 1e-6, bounds=box, steps=2
        ),
        "sparse": riata.PrivateSparseRegression(1.0, bounds=box, sparsity=2),
        "heavy": riata.HeavyTailedRegression(1.0, sparsity=2),
        "logistic": riata.PrivateLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0), **labels),
        "svc": riata.PrivateLinearSVC(1.0, 1e-6, bounds=Bounds(1.0), **labels),
        "projected": riata.ProjectedRegression(1.0, bounds=length, dimension=3, steps=2),
        "projected classes": riata.ProjectedClassifier(
            1.0, bounds=Bounds(1.0, norm="l2"), dimension=3, **labels
        ),
        "compressed": riata.ProjectedRegression(
            1.0, bounds=length, projection=GaussianProjection(P, 9, 5), compressed=True, steps=2
        ),
        "local lasso": riata.LocalLasso(2.0, bounds=length, **local),
        "local lasso, bounds": riata.LocalLasso(2.0, bounds=each, **local),
        "local logistic": riata.LocalLogisticRegression(
            2.0, bounds=Bounds(1.0), classes=_CLASSES, **local
        ),
        "local kernel": riata.LocalKernelRidge(2.0, bounds=box, pairs=4, **local),
        "local mean": riata.LocalSparseMean(2.0, bounds=Bounds(1.0), **local),
    }


def _fitted(name, model):
    x, y = _rows()
    if name == "local mean":
        return model.fit(x)
    return model.fit(x, _CLASSES[(y > 0).astype(int)] if hasattr(model, "classes") else y)


def _from_source():
    """A model whose file has a schema in it."""
    schema = Schema.from_table(SCHEMA)
    frame = pd.DataFrame(
        {
            "age": np.arange(N) % 90,
            "ward": ["north", "south", "west"] * (N // 3),
            "smokes": ["yes", "no"] * (N // 2),
            "notes": ["a b c"] * N,
            "stay": ["short", "long", "other"] * (N // 3),
            "patient": np.arange(N) // 2,
        }
    )
    model = riata.PrivateLogisticRegression(1.0, 1e-6, steps=2)
    return model.fit(riata.read(frame, schema))


def models(folder):
    """A model file for each estimator, one with a schema and one that a survey learned."""
    made = {}
    fitted = {name: _fitted(name, model) for name, model in estimators().items()}
    fitted |= {"schema": _from_source(), "survey": _aggregator("linear").solve()}
    for number, (name, model) in enumerate(fitted.items()):
        made[name] = folder / f"{number}.riata"
        riata.save(model, made[name])
    return made


def schemas(folder):
    """A file for a schema of each form."""
    made = {"columns": folder / "columns.toml", "wide": folder / "wide.toml"}
    Schema.from_table(SCHEMA).save(made["columns"])
    Schema.from_table(WIDE_SCHEMA).save(made["wide"])
    return made


def tasks(folder):
    """A file for a task of each form."""
    made = {}
    for name, table in TASKS.items():
        made[name] = folder / f"{name}.json"
        Task.from_table(table).save(made[name])
    return made


def _aggregator(name):
    seeds = np.arange(200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return Aggregator(Task.from_table(TASKS[name]), expected=100).add(seeds)


def shards(folder):
    """A file for the sums of a task of each form, and of two that were merged."""
    made = {}
    for name in TASKS:
        made[name] = folder / f"{name}.npz"
        _aggregator(name).save(made[name])
    made["merged"] = folder / "merged.npz"
    other = Aggregator(Task.from_table(TASKS["mean"]), expected=50)
    _aggregator("mean").merge(other).save(made["merged"])
    return made


FORMS = {"model": models, "schema": schemas, "task": tasks, "shard": shards}


def opened(path):
    """The members of an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def manifest(path):
    """The members of a model file, and what its model.json says."""
    members = opened(path)
    return members, json.loads(members["model.json"])


def write_model(path, members, said):
    """A model file with another model.json."""
    path.write_bytes(pack({**members, "model.json": json.dumps(said, indent=1).encode()}))
    return path


def write_arrays(path, arrays, compressed=False):
    """The file of an aggregator with these arrays."""
    with path.open("wb") as stream:
        (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return path


def arrays(path):
    """The arrays of an aggregator's file."""
    with np.load(path) as held:
        return {name: held[name] for name in held.files}
