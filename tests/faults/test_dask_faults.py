"""Fits on a Dask cluster: the same bits as in one process, and workers that die on the way."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateOrdinalRegression,
    PrivateSparseRegression,
    ProjectedRegression,
    Schema,
    read,
)
from riata.engines import actor as actor_module
from riata.engines import dask as dask_module
from riata.engines.actor import Question, RowActor
from riata.engines.dask import DaskEngine, InMemory
from riata.engines.messages import QueryWriter
from riata.engines.replies import Expected, Reply
from riata.engines.shard import Shard
from riata.errors import CheckpointError, ClusterLost, InvalidArgument
from riata.losses import Squared
from riata.preparation import Preparation
from riata.problem import Problem
from riata.queries import Gradient
from riata.sets import GroupL1Ball, L1Ball, L2Ball
from riata.solvers import SOLVERS
from riata.vectors import Vector

from clusters import cluster, kill_a_worker

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # of the cluster
]

N, P = 900, 30
RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (N, P)) * (RNG.uniform(size=(N, P)) < 0.3)
Y = 0.6 * X[:, 3] - 0.4 * X[:, 7] + 0.1 * RNG.standard_normal(N)
LABELS = RNG.integers(0, 3, N)
UNIT, SHORT = Bounds(1.0, 1.0), Bounds(2.0, 1.0, norm="l2")


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


MODELS = {
    "selections": (PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="frank-wolfe", steps=9), Y),
    "auto": (PrivateLasso(1.0, 1e-6, bounds=UNIT), Y),
    "greedy": (PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="greedy"), Y),
    "objective": (PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="objective-perturbation"), Y),
    "gradient": (PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="noisy-gradient", steps=6), Y),
    "thresholds": (PrivateSparseRegression(1.0, 1e-6, bounds=UNIT, sparsity=3), Y),
    "heavy tails": (HeavyTailedRegression(1.0, 1e-6, sparsity=3), Y),
    "groups": (
        PrivateErm(
            Squared(), GroupL1Ball(np.repeat(np.arange(6), 5), 1.0), 1.0, 1e-6, bounds=UNIT, steps=5
        ),
        Y,
    ),
    "projected": (ProjectedRegression(1.0, 1e-6, bounds=SHORT, steps=5), Y),
    "classes": (PrivateLogisticRegression(1.0, 1e-6, bounds=UNIT, classes=[0, 1, 2]), LABELS),
    "words": (PrivateLinearSVC(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2]), LABELS),
}

#: A model for each solver that can be asked for by name, but for those above.
BY_NAME = {
    "refitted-frank-wolfe": PrivateLasso(1.0, 1e-6, bounds=UNIT),
    "sufficient-statistics": PrivateLasso(1.0, 1e-6, bounds=UNIT),
    "averaged-gradient": PrivateLasso(1.0, 1e-6, bounds=UNIT),
    "whitened-gradient": PrivateLasso(1.0, 1e-6, bounds=UNIT),
    "public-design": PrivateLasso(1.0, 1e-6, bounds=UNIT, adjacency="replace-label"),
    "gaussian-frank-wolfe": PrivateLasso(1.0, 1e-6, bounds=SHORT),
    "scaled-gradient": PrivateLasso(1.0, 1e-6, bounds=SHORT),
    "class-sums": PrivateLinearSVC(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2]),
    "joint-class-sums": PrivateLogisticRegression(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2]),
    "softmax-gradient": PrivateLogisticRegression(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2]),
    "hard-thresholding": PrivateSparseRegression(
        1.0, 1e-6, bounds=SHORT, sparsity=3, solver="hard-thresholding"
    ),
    "posterior-sampling": PrivateErm(Squared(), L2Ball(1.0), 1.0, 1e-6, bounds=SHORT),
    "profile-gradient": PrivateOrdinalRegression(1.0, 1e-6, bounds=UNIT, classes=[0, 1, 2]),
}
MODELS |= {
    name: (model.set_params(solver=name), LABELS if hasattr(model, "classes") else Y)
    for name, model in BY_NAME.items()
}


@pytest.mark.parametrize("name", MODELS)
def test_a_cluster_finds_the_same_bits_as_one_process(name, client):
    model, y = MODELS[name]
    layout = sparse.csr_array if list(MODELS).index(name) % 2 else np.asarray
    found = [
        clone(model).set_params(engine=engine, random_state=4).fit(layout(X), y)
        for engine in ("scan", "dask")
    ]
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    np.testing.assert_array_equal(found[0].intercept_, found[1].intercept_)
    np.testing.assert_array_equal(found[0].coef_error_, found[1].coef_error_)
    assert str(found[0].privacy_) == str(found[1].privacy_)


def test_every_solver_is_among_them():
    known = {getattr(model, "solver", "auto") for model, _ in MODELS.values()}
    assert set(SOLVERS) - known == {"projected"}  # whose estimator has no other


def test_workers_read_the_files_of_a_folder(client, tmp_path, capsys):
    names = [f"c{i}" for i in range(P)]
    table = pd.DataFrame(X, columns=names).assign(y=Y)
    for number, part in enumerate((table[:200], table[200:500], table[500:])):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    features = [{"name": name, "kind": "number", "bounds": [-1, 1]} for name in names]
    schema = Schema.from_table({"features": features, "target": {"name": "y", "bounds": [-1, 1]}})
    model = PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=9, random_state=4)
    found = [
        clone(model).set_params(engine=engine, verbose=True).fit(read(tmp_path, schema))
        for engine in ("scan", "disk", "dask")
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each.coef_, found[0].coef_)
        np.testing.assert_array_equal(each.intercept_, found[0].intercept_)
    said = capsys.readouterr().err
    assert said.count("900/900") == said.count("9/9") == 3  # rows that are read, and steps


@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_rows_of_a_collection_stay_at_the_workers(frame, client, monkeypatch):
    x, y = da.from_array(X, chunks=(200, 20)), da.from_array(Y, chunks=300)
    labels = da.from_array(LABELS, chunks=300)
    if frame:
        table = pd.DataFrame(X, columns=[f"c{i}" for i in range(P)]).assign(y=Y, label=LABELS)
        table = dd.from_pandas(table, npartitions=3)
        x, y, labels = table[[f"c{i}" for i in range(P)]], table["y"], table["label"]
    for model, target, plain in (("selections", y, Y), ("classes", labels, LABELS)):
        expected = clone(MODELS[model][0]).set_params(engine="scan", random_state=4).fit(X, plain)
        for engine in ("auto", "dask", "scan", "disk"):
            found = clone(MODELS[model][0]).set_params(engine=engine, random_state=4)
            found.fit(x, target)
            np.testing.assert_array_equal(found.coef_, expected.coef_)
            np.testing.assert_array_equal(found.intercept_, expected.intercept_)
            assert found.n_features_in_ == P
            assert hasattr(found, "feature_names_in_") == frame


def test_collections_that_do_not_fit_together_are_refused(client):
    x, y = da.from_array(X, chunks=(200, 20)), da.from_array(Y, chunks=300)
    model = MODELS["selections"][0]
    bag = db.from_sequence([1, 2])
    text = dd.from_pandas(pd.DataFrame({"a": ["secret"] * N, "b": Y}), npartitions=3)
    for rows, targets, what in (
        (x, Y, "same partitions"), (x, y[1:], "899 targets"), (x, x, "2"), (bag, y, "a Dask Bag"),
        (x, bag, "a Dask Bag"), (text, y, "X has the type object"),
        (x, text["a"], "y has the type"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match=what):
            model.fit(rows, targets)


def engine_for(client, pieces=4):
    cuts = np.linspace(0, N, pieces + 1).astype(int)
    rows = [InMemory(X[a:b], Y[a:b]) for a, b in pairwise(cuts)]
    return DaskEngine(rows, Preparation(UNIT), client)


@pytest.mark.parametrize("fan", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_workers_that_die_are_replaced_and_the_sum_is_the_same(fan, monkeypatch):
    """In a chain, where each worker asks the next, as in a wide tree."""
    monkeypatch.setattr(dask_module, "_FAN", fan)
    with cluster(3) as client:
        engine, whole = engine_for(client), Shard(*Preparation(UNIT)(X, Y))
        problem = Problem(Squared(), L1Ball(1.0), UNIT, N, P)
        for k in range(5):
            query = Gradient(problem, Vector.unit(P, k, 0.5))
            np.testing.assert_array_equal(engine.total(query), whole.total(query))
            np.testing.assert_array_equal(
                engine.part(1, 3).total(query), whole.part(1, 3).total(query)
            )
            if k == 2:
                kill_a_worker(client)


@pytest.mark.parametrize("short", [0, 10**9])
def test_an_actor_that_is_asked_again_before_it_answered_sums_alike(short, monkeypatch):
    """In a thread of its own or in that of the worker, one question after the other."""
    monkeypatch.setattr(actor_module, "_SHORT", short)
    preparation, writer = Preparation(UNIT), QueryWriter()
    rows = [(X[:400], Y[:400], None, 0), (X[400:], Y[400:], None, 400)]
    actor = RowActor(rows, preparation, {})
    whole = Shard(*preparation(X, Y))
    problem = Problem(Squared(), L1Ball(1.0), UNIT, N, P)
    queries = [Gradient(problem, Vector.unit(P, k, 0.5)) for k in (1, 2, 1, 3)]
    questions = [Question(writer.write(query), k % 2, 2) for k, query in enumerate(queries)]

    async def answers():
        return await asyncio.gather(*(actor.total(each) for each in questions))

    for k, frames in enumerate(asyncio.run(answers())):
        reply = Reply.of(frames, Expected.of(queries[k], P))
        np.testing.assert_array_equal(reply.total, whole.part(k % 2, 2).total(queries[k]))
        assert not reply.lost + reply.unheard


def test_a_fit_survives_a_worker_and_is_charged_once(tmp_path, monkeypatch):
    model = PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="frank-wolfe", steps=30)
    alone, shared = (
        Ledger.create(tmp_path / f"{name}.db", dataset="d", ceiling=Budget(9.0, 1e-6))
        for name in ("alone", "shared")
    )
    steps = [0]
    total_of = DaskEngine.total_of

    with cluster() as client:

        def counted(self, *query):
            steps[0] += 1
            if steps[0] == 20:
                kill_a_worker(client)
            return total_of(self, *query)

        monkeypatch.setattr(DaskEngine, "total_of", counted)
        clone(model).set_params(engine="dask", ledger=shared).fit(X, Y)
    clone(model).set_params(engine="scan", ledger=alone).fit(X, Y)
    assert steps[0] >= 30
    assert len(shared.charges) == 1
    assert shared.spent == alone.spent
    assert shared.charges[0].event == alone.charges[0].event


@pytest.mark.parametrize("changed", [False, True])
def test_files_that_are_read_again_must_be_those_of_the_run(changed, tmp_path, monkeypatch):
    """After a loss rows are read again: with a checkpoint, noise must not meet other rows."""
    folder, names = tmp_path / "rows", [f"c{i}" for i in range(P)]
    folder.mkdir()

    def write(sign):
        table = pd.DataFrame(sign * X, columns=names).assign(y=Y)
        table[:500].to_parquet(folder / "part-0.parquet")
        table[500:].to_parquet(folder / "part-1.parquet")

    write(1)
    features = [{"name": name, "kind": "number", "bounds": [-1, 1]} for name in names]
    schema = Schema.from_table({"features": features, "target": {"name": "y", "bounds": [-1, 1]}})
    model = PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=9, engine="dask")
    steps, total_of = [0], DaskEngine.total_of
    with cluster() as client:

        def counted(self, *query):
            steps[0] += 1
            if steps[0] == 5:
                write(-1 if changed else 1)
                kill_a_worker(client)
            return total_of(self, *query)

        monkeypatch.setattr(DaskEngine, "total_of", counted)
        if changed:
            with pytest.raises(CheckpointError, match="other rows"):
                model.fit(read(folder, schema), checkpoint=tmp_path / "fit")
            write(1)
        model.fit(read(folder, schema), checkpoint=tmp_path / "fit")
    assert len((tmp_path / "fit").read_bytes().splitlines()) >= 9


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(dask_module, "_WAIT", 0.5)
    with cluster() as client:
        engine = engine_for(client)
        client.cluster.scale(0)
        client.sync(client.cluster._correct_state)
        query = Gradient(Problem(Squared(), L1Ball(1.0), UNIT, N, P), Vector.zero(P))
        with pytest.raises(ClusterLost, match="stays charged"):
            engine.total(query)
