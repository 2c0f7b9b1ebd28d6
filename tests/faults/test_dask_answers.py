"""Workers that fail or answer wrongly, and partitions with odd values: no log, event or error
quotes a row, no row decides on an error, and nothing that cannot be a sum is added.
"""

from __future__ import annotations

import datetime
import traceback
from decimal import Decimal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from riata import Bounds, PrivateLasso, PrivateLogisticRegression
from riata.engines import dask as dask_module
from riata.engines.dask import DaskEngine, InMemory
from riata.errors import ClusterError, DataError
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

N, P = 300, 4
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (N, P))
Y = 0.5 * X[:, 1]
LABELS = np.where(X[:, 0] > 0, "yes", "no").astype(object)
UNIT = Bounds(1.0, 1.0)
MODEL = PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="frank-wolfe", steps=4, random_state=3)
SECRET = "SECRET-4711"

#: Eight digits of each number of some rows, which nothing else has.
VALUES = [f"{x:.12f}"[1:10] for x in np.abs(X[[17, 117, 217]]).ravel()]


@pytest.fixture(scope="module")
def workers():
    with cluster() as made:
        yield made


@pytest.fixture
def client(workers):
    """The current one. Whatever a test did with it, nothing of a row shows afterwards."""
    with workers.as_current():
        yield workers
    workers.run(mend)
    assert_silent(workers)


def assert_silent(client):
    """Neither logs nor events nor what the scheduler knows of tasks has a value of a row."""
    told = {
        "workers": client.get_worker_logs(),
        "nannies": client.get_worker_logs(nanny=True),
        "scheduler": client.get_scheduler_logs(),
        "events": client.get_events(),
        "tasks": client.run_on_scheduler(_tasks),
    }
    for place, text in told.items():
        for value in (SECRET, *VALUES):
            at = repr(text).find(value)
            assert at < 0, (place, repr(text)[max(0, at - 300) : at + 100])


def _tasks(dask_scheduler):
    """Of riata: those of a collection that was made from an array have that array in them."""
    return [
        (task.key, repr(task.run_spec), repr(task.exception_text), repr(task.traceback_text))
        for task in dask_scheduler.tasks.values()
        if "RowActor" in str(task.key)
    ]


def quoted(error):
    """Everything that a person could see of an error, and of what led to it."""
    text, seen = "", error
    while seen is not None:
        text += "".join(traceback.format_exception(seen)) + repr(seen.__dict__)
        seen = seen.__cause__ or seen.__context__
    return text


#: A value in one cell, and the number that it stands for.
ODD = {
    "text": (SECRET, np.nan), "number as text": (" 0.25 ", 0.25), "bytes": (b"0.5", 0.5),
    "none": (None, np.nan), "missing": (pd.NA, np.nan), "no time": (pd.NaT, np.nan),
    "date": (datetime.date(1947, 1, 1), np.nan), "moment": (pd.Timestamp("1947-01-01"), np.nan),
    "decimal": (Decimal("0.25"), 0.25), "signalling": (Decimal("sNaN"), np.nan),
    "huge": (10**400, np.inf), "minus huge": (-(10**400), -np.inf), "list": ([SECRET], np.nan),
    "dict": ({SECRET: 1}, np.nan), "array": (np.array([1.0, 2.0]), np.nan), "yes": (True, 1.0),
    "complex": (0.5 + 0j, 0.5), "no real": (1j, np.nan), "underscore": ("1_0", np.nan),
}  # fmt: skip


def odd(value):
    """A function of one block of 100 rows, the second, that puts a value into its row 17."""

    def changed(block, block_info=None):
        if block_info[0]["chunk-location"][0] != 1:
            return block
        found = block.astype(object)
        found[(17, *(2,) * (block.ndim - 1))] = value
        return found

    return changed


@pytest.mark.parametrize("engine", ["dask", "scan"])
def test_odd_values_are_missing_and_nothing_else_changes(engine, client):
    for name, (value, number) in ODD.items():
        x, y = X.copy(), Y.copy()
        x[117, 2] = y[117] = number
        expected = clone(MODEL).set_params(engine="scan").fit(x, y)
        rows = da.from_array(X, chunks=(100, P)).map_blocks(odd(value), dtype=float, meta=X[:0])
        targets = da.from_array(Y, chunks=100).map_blocks(odd(value), dtype=float, meta=Y[:0])
        found = clone(MODEL).set_params(engine=engine).fit(rows, targets)
        np.testing.assert_array_equal(found.coef_, expected.coef_, err_msg=name)
        np.testing.assert_array_equal(found.intercept_, expected.intercept_, err_msg=name)


def dates(block):
    return block.astype("M8[ns]")


def texts(block):
    return block.astype("U32")


def record(block):
    return np.zeros(block.shape, dtype=[("a", float)])


@pytest.mark.parametrize("kind", [dates, texts, record])
def test_partitions_of_other_types_are_no_error(kind, client):
    """One row can decide on the type of all: values that were numbers stay what they are."""
    rows = da.from_array(X, chunks=(100, P)).map_blocks(kind, dtype=float, meta=X[:0])
    found = clone(MODEL).set_params(engine="dask").fit(rows, da.from_array(Y, chunks=100))
    expected = clone(MODEL).set_params(engine="scan").fit(X if kind is texts else 0 * X, Y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_odd_labels_are_no_class(client):
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=UNIT, classes=["no", "yes"], random_state=3)
    rows = da.from_array(X, chunks=(100, P))
    for value in (SECRET, None, [SECRET], 3, pd.NA):
        labels = LABELS.copy()
        labels[117] = "another"
        expected = clone(model).set_params(engine="scan").fit(X, labels)
        targets = da.from_array(LABELS, chunks=100).map_blocks(odd(value), dtype=object)
        found = clone(model).set_params(engine="dask").fit(rows, targets)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


def shorter(block):
    return block[:-1]


def wider(block):
    return np.hstack([block, block])


def ragged(block):
    return np.array([list(row) for row in block] + [[1.0]], dtype=object)


@pytest.mark.parametrize("change", [shorter, wider, ragged])
@pytest.mark.parametrize("engine", ["dask", "scan"])
def test_partitions_of_another_shape_are_refused_and_not_quoted(change, engine, client):
    rows = da.from_array(X, chunks=(100, P)).map_blocks(change, dtype=float, meta=X[:0])
    rows._chunks = ((100,) * 3, (P,))
    with pytest.raises((ClusterError, DataError), match="another shape") as found:
        clone(MODEL).set_params(engine=engine).fit(rows, da.from_array(Y, chunks=100))
    assert not any(value in quoted(found.value) for value in VALUES)


@pytest.fixture(scope="module")
def failing():
    """Another cluster, whose logs have what the tests' own functions say."""
    with cluster(1) as made, made.as_current():
        yield made


@pytest.mark.parametrize("engine", ["dask", "scan"])
@pytest.mark.parametrize("error", [ValueError, OSError, RuntimeError, KeyError])
def test_a_collection_that_fails_is_not_quoted(engine, error, failing):
    """Dask itself logs what its own tasks say: that is the collection's, and not looked at here."""

    def fail(block):
        raise error(SECRET)

    rows = da.from_array(X, chunks=(100, P)).map_blocks(fail, dtype=float, meta=X[:0])
    with pytest.raises((ClusterError, DataError), match="cannot be computed") as found:
        clone(MODEL).set_params(engine=engine).fit(rows, da.from_array(Y, chunks=100))
    assert SECRET not in quoted(found.value)


def test_lengths_that_cannot_be_counted_are_not_quoted(failing):
    def fail(part):
        if len(part) > 1:  # not when Dask tries it on its own rows
            raise ValueError(SECRET)
        return part

    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    frame = frame.map_partitions(fail, meta=frame._meta)
    with pytest.raises(DataError, match="cannot be computed") as found:
        clone(MODEL).fit(frame, da.from_array(Y, chunks=100))
    assert SECRET not in quoted(found.value)


# Workers that fail, or answer wrongly


def engine_for(client):
    rows = [InMemory(X[a : a + 100], Y[a : a + 100]) for a in (0, 100, 200)]
    return DaskEngine(rows, Preparation(UNIT), client)


QUERY = Gradient(Problem(Squared(), L1Ball(1.0), UNIT, N, P), Vector.unit(P, 1, 0.5))


def answer_with(make):
    """At a worker: what every actor answers from now on."""
    from riata.engines.actor import RowActor

    mend()
    total = RowActor.total

    async def wrong(self, question):
        return make(await total(self, question))

    RowActor.total, RowActor.right = wrong, total


def fail_with(error):
    """At a worker: every sum, and every reading, fails from now on."""
    from riata.engines.shard import Shard

    def raising(self, *arguments):
        raise error

    Shard.right = Shard.total, Shard.__init__
    Shard.total = Shard.__init__ = raising


def mend():
    """At a worker: what these two changed is as it was."""
    from riata.engines.actor import RowActor
    from riata.engines.shard import Shard

    if hasattr(RowActor, "right"):
        RowActor.total = RowActor.right
    if hasattr(Shard, "right"):
        Shard.total, Shard.__init__ = Shard.right


WRONG = {
    "a value": lambda frames: SECRET,
    "an object": lambda frames: {SECRET: frames},
    "no sum": lambda frames: frames[:1],
    "fewer columns": lambda frames: [frames[0], frames[1][:-1]],
    "more columns": lambda frames: [frames[0], np.append(frames[1], 1)],
    "one column": lambda frames: [frames[0], frames[1][:1]],
    "floats": lambda frames: [frames[0], frames[1] / 1],
    "halves": lambda frames: [frames[0], frames[1].astype(np.int32)],
    "too large": lambda frames: [frames[0], frames[1] + 10**14],
    "too small": lambda frames: [frames[0], frames[1] - 10**14],
    "all there is": lambda frames: [frames[0], np.full_like(frames[1], -(2**63))],
    "others missing": lambda frames: [np.array([1, 1, 0, 0, P]), frames[1]],
}


@pytest.mark.parametrize("fan", [1, 16], ids=["chain", "star"])
def test_answers_that_cannot_be_right_are_refused(fan, client, monkeypatch):
    monkeypatch.setattr(dask_module, "_FAN", fan)
    engine = engine_for(client)
    right = engine.total(QUERY)
    for name, make in WRONG.items():
        client.run(answer_with, make)
        with pytest.raises(ClusterError, match="stays charged") as found:
            engine.total(QUERY)
        assert SECRET not in quoted(found.value), name
    client.run(mend)
    np.testing.assert_array_equal(engine.total(QUERY), right)


@pytest.mark.parametrize("error", [ValueError(SECRET), MemoryError(SECRET), KeyError(SECRET)])
def test_workers_that_fail_say_so_without_rows(error, client):
    engine = engine_for(client)
    client.run(fail_with, error)
    for do in (lambda: engine.total(QUERY), lambda: engine_for(client)):
        with pytest.raises(ClusterError, match="stays charged") as found:
            do()
        assert SECRET not in quoted(found.value)
        assert ("memory" in str(found.value)) == isinstance(error, MemoryError)


def test_sparse_partitions_and_frames_are_rows_like_others(client):
    kept = np.where(np.abs(X) > 0.5, X, 0.0)
    expected = clone(MODEL).set_params(engine="scan").fit(kept, Y)
    rows = da.from_array(kept, chunks=(100, P)).map_blocks(sparse.csr_matrix)
    found = clone(MODEL).set_params(engine="dask").fit(rows, da.from_array(Y, chunks=100))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
