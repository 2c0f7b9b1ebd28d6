"""`on_release`: its records are complete and public, and nothing comes back from them.

Every solver is fitted, with and without a checkpoint. What the accounts were charged is compared
with the records; records are searched for anything that leads to a row; and callbacks that do
their worst change no bit of a model. Everything here is exact: no test can fail by chance.
"""

import dataclasses
import gc
import itertools
import pickle
import threading
import types
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from riata import (
    Bounds,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateOrdinalRegression,
    PrivateSearch,
    ProjectedRegression,
    forecast,
)
from riata.audit import Release, on_release
from riata.curator import Account, Curator, Filter, Listed
from riata.errors import InvalidArgument
from riata.losses import Huber, Logistic, Squared
from riata.privacy.events import BoundedRange, Gaussian, RandomlyRepeated, leaves
from riata.problem import Problem
from riata.queries import Block, Query, SumsByClass
from riata.releases import described
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS, NoisyGradient, PrivateGreedy, PrivatePeeling, Projected
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

N_ROWS, N_COLUMNS = 211, 7  # no other array of a fit has as many rows
RNG = np.random.default_rng(4)
X = RNG.uniform(-1, 1, (N_ROWS, N_COLUMNS))
Y = np.clip(X[:, 1] - X[:, 4] + 0.1 * RNG.standard_normal(N_ROWS), -1, 1)
LABELS = (Y > 0).astype(int)
UNIT, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")


def erm(solver, constraint=None, delta=1e-6, bounds=UNIT, loss=None, **options):
    loss = loss or Squared()
    return lambda: PrivateErm(
        loss, constraint or L1Ball(1.0), 4.0, delta, bounds=bounds, solver=solver, random_state=5,
        **options,
    )  # fmt: skip


def logistic(classes=(0, 1), **options):
    return lambda: PrivateLogisticRegression(
        4.0, 1e-6, bounds=LENGTH, classes=list(classes), random_state=5, **options
    )


MODELS = {
    "greedy": erm("greedy"),
    "greedy, pure": erm(PrivateGreedy(4), delta=0.0),
    "refitted-frank-wolfe": erm("refitted-frank-wolfe", steps=4),
    "sufficient-statistics": erm("sufficient-statistics", loss=Huber(0.5)),
    "frank-wolfe": erm("frank-wolfe", steps=4),
    "frank-wolfe, pure": erm("frank-wolfe", delta=0.0, steps=4, adjacency="add-remove"),
    "gaussian-frank-wolfe": erm("gaussian-frank-wolfe", steps=4),
    "noisy-gradient": erm("noisy-gradient", L2Ball(1.0), steps=4),
    "noisy-gradient, samples": erm(NoisyGradient(4, sampling=0.5), L2Ball(1.0)),
    "scaled-gradient": erm("scaled-gradient", bounds=LENGTH, steps=4),
    "whitened-gradient": erm("whitened-gradient", steps=4),
    "public-design": erm("public-design", adjacency="replace-label"),
    "averaged-gradient": erm("averaged-gradient", steps=4),
    "class-sums": logistic(solver="class-sums", steps=4),
    "joint-class-sums": logistic(classes=(0, 1, 2), solver="joint-class-sums"),
    "softmax-gradient": logistic(classes=(0, 1, 2), solver="softmax-gradient", steps=4),
    "three classes": logistic(classes=(0, 1, 2), class_weight="balanced", steps=3),
    "profile-gradient": lambda: PrivateOrdinalRegression(
        4.0, 1e-6, bounds=LENGTH, classes=[0, 1, 2], steps=4, random_state=5
    ),
    "objective-perturbation": erm("objective-perturbation", L2Ball(1.0), bounds=LENGTH),
    "objective-perturbation, pure": erm("objective-perturbation", delta=0.0, loss=Logistic()),
    "hard-thresholding": erm("hard-thresholding", SparseBall(2, 1.0), steps=4),
    "peeling": erm(PrivatePeeling(4, split=False), SparseBall(2, 1.0)),
    "peeling, split": erm(PrivatePeeling(4, split=True), SparseBall(2, 1.0), delta=0.0),
    "projected": erm(Projected(3, dimension=3)),
    "posterior-sampling": erm("posterior-sampling", L2Ball(1.0), delta=0.0, bounds=LENGTH),
    "ProjectedRegression": lambda: ProjectedRegression(
        4.0, 1e-6, bounds=LENGTH, dimension=3, steps=4, random_state=5
    ),
}  # fmt: skip

#: Solvers that leave out releases where an earlier one says that they would not help.
MAY_STOP = ("class-sums", "scaled-gradient", "softmax-gradient")
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def fitted(make, callback=None, x=X, **how):
    model = make()
    y = LABELS if hasattr(model, "classes") else Y
    if callback is None:
        return model.fit(x, y, **how)
    with on_release(callback):
        return model.fit(x, y, **how)


def parameters(model):
    return np.append(np.ravel(model.coef_), model.intercept_)


def test_every_solver_is_tried():
    assert {name.split(",")[0] for name in MODELS} >= set(SOLVERS)


@every_model
@pytest.mark.parametrize("kept", [False, True], ids=["", "checkpoint"])
def test_every_charge_has_its_records(make, kept, tmp_path, monkeypatch):
    charged = Counter()
    for kind in (Listed, Filter):
        honest = kind.take

        def take(self, event, honest=honest):
            honest(self, event)
            charged.update(leaves(event))

        monkeypatch.setattr(kind, "take", take)
    seen = []
    model = fitted(make, seen.append, **({"checkpoint": tmp_path / "kept"} if kept else {}))
    told = Counter()
    for release in seen:
        told.update(leaves(release.event))
    assert told == charged
    assert sum(told.values()) > 0
    assert [release.number for release in seen] == list(range(len(seen)))
    plan = model.plan(N_ROWS, N_COLUMNS)
    if not plan.adaptive:
        planned = Counter({leaf: k * plan.parts for leaf, k in leaves(plan.event).items()})
        assert told <= planned
        assert told == planned or plan.solver in MAY_STOP
    assert {release.part for release in seen} == set(range(plan.parts))


@every_model
def test_what_the_noise_was_scaled_to_is_told(make, monkeypatch):
    scales = []
    honest = Query.sensitivity

    def noted(self, norm):
        found = honest(self, norm)
        scales.append((norm, found))
        return found

    monkeypatch.setattr(Query, "sensitivity", noted)
    seen = []
    fitted(make, lambda release: seen.append((release, list(scales))))
    for release, asked in seen:
        if release.norm is None:
            assert release.sensitivity is None
            assert release.mechanism.name in ("PosteriorSample", "PublicAnswer")
            continue
        assert release.sensitivity > 0
        expected = {"Gaussian": "l2", "Sampled": "l2", "Laplace": "l1", "Gamma": "l2"}
        name = release.mechanism.name
        assert release.norm == next(
            (norm for key, norm in expected.items() if name.startswith(key)), "linf"
        )
        if release.query.name in (
            "Gradient",
            "MeanSlope",
            "ClippedGradient",
        ):  # no sums of their own
            assert (release.norm, release.sensitivity) in asked


@every_model
def test_looking_changes_nothing(make, tmp_path):
    plain = parameters(fitted(make))
    np.testing.assert_array_equal(parameters(fitted(make, lambda release: None)), plain)
    kept = parameters(fitted(make, checkpoint=tmp_path / "one"))
    seen = parameters(fitted(make, lambda release: None, checkpoint=tmp_path / "two"))
    np.testing.assert_array_equal(kept, seen)


def arrays_of(thing):
    """Every array that plain data holds."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, Vector):
        yield from (thing.support, thing.values)
    elif isinstance(thing, dict):
        for each in thing.values():
            yield from arrays_of(each)
    elif isinstance(thing, tuple):
        for each in thing:
            yield from arrays_of(each)
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from arrays_of(getattr(thing, field.name))


@every_model
def test_a_hostile_callback_changes_nothing(make):
    def vandal(release):
        for array in arrays_of(release):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            array.setflags(write=True)
            array[...] = 1
        for each in (release.query, release.mechanism):
            each.parameters.clear()

    np.testing.assert_array_equal(parameters(fitted(make, vandal)), parameters(fitted(make)))


def test_a_record_is_frozen():
    seen = []
    fitted(MODELS["frank-wolfe"], seen.append)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].value = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].query.name = "another"


# Nothing leads from a record to a row


PASSED_OVER = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type(gc))


def reachable(start):
    """Everything that an object leads to, but not what all objects of its class lead to."""
    known, new = {}, [start]
    while new:
        thing = new.pop()
        if id(thing) in known or isinstance(thing, PASSED_OVER):
            continue
        known[id(thing)] = thing
        new += gc.get_referents(thing)
        if isinstance(thing, np.ndarray) and thing.base is not None:
            new.append(thing.base)
    return list(known.values())


@every_model
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_no_record_leads_to_a_row_or_to_what_holds_rows(make, kind, monkeypatch):
    engines = []
    honest = Curator.__init__

    def noted(self, engine, *args, **kwargs):
        engines.append(engine)
        honest(self, engine, *args, **kwargs)

    monkeypatch.setattr(Curator, "__init__", noted)
    seen, x = [], kind(X)
    fitted(make, seen.append, x=x)
    private = [x, Y, LABELS, *engines]
    private += [v for e in engines for v in vars(e).values() if isinstance(v, np.ndarray)]
    assert len(private) > 4
    for release in seen:
        found = reachable(release)
        assert not {id(thing) for thing in found} & {id(thing) for thing in private}
        for thing in found:
            assert not isinstance(thing, (Curator, Query, Account))
            assert not hasattr(thing, "total")
            if isinstance(thing, np.ndarray):
                assert thing.base is None
                assert N_ROWS not in thing.shape
        assert len(found) < 500
        pickle.loads(pickle.dumps(release))


def test_the_search_for_rows_finds_them():
    """A record with a live query, or with a view of the rows, would be noticed."""
    seen = []
    fitted(MODELS["frank-wolfe"], seen.append)
    for hidden in (X[:1], [lambda: None, {"deep": (X,)}]):
        twin = dataclasses.replace(seen[0], value=hidden)
        assert any(thing is X for thing in reachable(twin))


def test_the_exact_answer_is_not_in_a_record():
    seen = []
    fitted(logistic(solver="class-sums", steps=1), seen.append)
    (sums,) = (release for release in seen if release.query.name == "SumsByClass")
    fitted_bounds = LENGTH.with_y(1.0)
    problem = Problem(Logistic(), L1Ball(1.0), fitted_bounds, N_ROWS, N_COLUMNS)
    query = SumsByClass(problem, sums.query["part"])
    rows = fitted_bounds.grid_x(X)
    exact = query.from_total(query.block_sum(Block(rows, np.where(LABELS, 1.0, -1.0))))
    assert sums.value.shape == exact.shape
    for array in arrays_of(sums):
        if array.shape == exact.shape:
            assert not np.any(array == exact)


# Checkpoints, compiled paths, parts and searches


class Stopped(Exception):
    """What a callback raises to end a fit."""


@every_model
def test_a_fit_that_goes_on_shows_the_same_records(make, tmp_path):
    whole = []
    fitted(make, whole.append, checkpoint=tmp_path / "whole")
    before, again = [], []

    def stop_half_way(release):
        before.append(release)
        if len(before) == (len(whole) + 1) // 2:
            raise Stopped

    with pytest.raises(Stopped):
        fitted(make, stop_half_way, checkpoint=tmp_path / "kept")
    fitted(make, again.append, checkpoint=tmp_path / "kept")
    assert len(again) == len(whole)
    for one, other in [*zip(before, whole, strict=False), *zip(again, whole, strict=True)]:
        assert pickle.dumps(one) == pickle.dumps(other)


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True], ids=["", "checkpoint"])
def test_compiled_selections_have_a_record_for_each_selection(kept, tmp_path):
    pytest.importorskip("numba")
    steps = 30
    model = PrivateLasso(
        4.0, 1e-6, bounds=UNIT, solver="frank-wolfe", steps=steps, fit_intercept=False,
        engine="numba", random_state=1,
    )  # fmt: skip
    seen = []
    with on_release(seen.append):
        model.fit(sparse.csr_array(X), Y, **({"checkpoint": tmp_path / "kept"} if kept else {}))
    assert [release.number for release in seen] == list(range(steps))
    assert Counter(r.event for r in seen) == leaves(model.plan(N_ROWS, N_COLUMNS).event)
    assert all(isinstance(release.event, BoundedRange) for release in seen)
    theta = np.zeros(N_COLUMNS)  # Algorithm 2 again, from the records alone
    for t, release in enumerate(seen, start=1):
        np.testing.assert_allclose(release.query["theta"].dense(), theta, atol=1e-12)
        assert isinstance(release.value, int)
        assert release.sensitivity > 0
        sign = 1.0 if release.value < N_COLUMNS else -1.0
        vertex = sign * model.plan(N_ROWS, N_COLUMNS).problem.set.radius
        theta *= 1 - 2 / (t + 2)
        theta[release.value % N_COLUMNS] += 2 / (t + 2) * vertex
    np.testing.assert_allclose(theta, model.coef_, atol=1e-12)


def test_peeling_shows_both_of_its_releases():
    seen = []
    fitted(MODELS["peeling"], seen.append)
    peeled = [(one, two) for one, two in itertools.pairwise(seen) if one.norm == "linf"]
    assert len(peeled) == 4
    for select, values in peeled:
        assert select.mechanism.name == "TopK"
        assert values.query.name == "GradientEntries"
        np.testing.assert_array_equal(values.query["columns"], select.value)
        assert np.all(np.diff(select.value) > 0)  # the order of selection is not released
        assert values.value.shape == (2,)


def test_a_search_shows_the_model_that_it_returns_and_no_other():
    estimator = PrivateLasso(None, bounds=UNIT, solver="frank-wolfe", steps=2)
    for seed in range(6):
        search = PrivateSearch(estimator, {"radius": [0.5, 1.0]}, 4.0, 1e-6, random_state=seed)
        seen = []
        with on_release(seen.append):
            search.fit(X, Y)
        (release,) = seen
        assert isinstance(release.event, RandomlyRepeated)
        assert release.event == search.plan(N_ROWS, N_COLUMNS).event
        np.testing.assert_array_equal(release.value["coef"], search.best_estimator_.coef_)
        assert release.value["score"] == search.best_score_
        radius = [0.5, 1.0][release.value["candidate"]]
        assert search.best_params_ == {"radius": radius}


def test_simulated_fits_are_not_shown():
    seen = []
    with on_release(seen.append):
        forecast(PrivateLasso(1.0, 1e-6, bounds=UNIT, steps=2), 200, 5, relevant=2, repeats=2)
    assert seen == []


# Where it holds


def test_blocks_nest_and_end():
    order = []
    with on_release(lambda release: order.append("outer")):
        fitted(MODELS["objective-perturbation"], lambda release: order.append("inner"))
        fitted(MODELS["objective-perturbation"])
    fitted(MODELS["objective-perturbation"])
    assert order == ["outer", "inner", "outer"]


def test_a_block_that_fails_ends_too():
    def stop(release):
        raise Stopped

    with pytest.raises(Stopped):
        fitted(MODELS["frank-wolfe"], stop)
    fitted(MODELS["frank-wolfe"])


def test_threads_do_not_see_each_other():
    seen, wait = {1: [], 2: []}, threading.Barrier(2, timeout=3600)

    def run(key, steps):
        with on_release(seen[key].append):
            wait.wait()
            fitted(erm("gaussian-frank-wolfe", steps=steps, fit_intercept=False))
            wait.wait()

    threads = [threading.Thread(target=run, args=(key, 3 * key)) for key in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: len(found) for key, found in seen.items()} == {1: 3, 2: 6}
    assert all([r.number for r in found] == list(range(len(found))) for found in seen.values())


def test_a_callback_that_is_none_is_refused_before_anything_is_charged():
    with pytest.raises(InvalidArgument, match="on_release needs a function"), on_release([]):
        pytest.fail("the block was entered")


def test_a_record_prints_without_its_value():
    seen = []
    fitted(MODELS["gaussian-frank-wolfe"], seen.append)
    text = repr(seen[0])
    assert "GaussianMechanism(noise_multiplier=" in text
    assert "value=" not in text
    assert isinstance(seen[0], Release)
    assert isinstance(seen[0].event, Gaussian)


def test_things_that_are_no_plain_data_are_told_by_how_they_print():
    class Holder:
        def __init__(self):
            self.rows = X

        def __repr__(self):
            return "Holder()"

    assert described(dataclasses.make_dataclass("Query", ["held"])(Holder()))["held"] == "Holder()"
