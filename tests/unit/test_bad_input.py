"""Bad arguments stop a fit before a row is read and before anything is charged; bad rows never."""

import numpy as np
import pytest
from scipy import sparse

from riata import (
    Bounds,
    Budget,
    BudgetExceeded,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
)
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.losses import Huber, Squared
from riata.mechanisms import ExponentialMechanism, GaussianMechanism
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Gradient, VertexUtilities
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex
from riata.solvers import FrankWolfe, GaussianFrankWolfe, PrivateFrankWolfe

pytestmark = pytest.mark.matrix(one_in=13)

BOUNDS = Bounds(x=1.0, y=1.0)
X = np.linspace(-1, 1, 60).reshape(20, 3)
Y = np.linspace(-1, 1, 20)
LABELS = np.arange(20) % 2


def lasso(**changes):
    return PrivateLasso(**{"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS} | changes)


def logistic(**changes):
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "classes": [0, 1]}
    return PrivateLogisticRegression(**given | changes)


def erm(**changes):
    given = {"loss": Squared(), "set": L1Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}
    return PrivateErm(**given | changes)


@pytest.fixture
def ledger():
    return Ledger.create(":memory:", dataset="d", ceiling=Budget(1e9, 1e-3))


@pytest.fixture
def no_rows_read(monkeypatch):
    def read(self, *args, **options):
        raise AssertionError("a row was read")

    monkeypatch.setattr(LocalEngine, "__init__", read)


BAD_PARAMETERS = {
    "no bounds": ({"bounds": None}, "needs bounds"),
    "bounds of another type": ({"bounds": (1.0, 1.0)}, "must be a Bounds"),
    "epsilon zero": ({"epsilon": 0.0}, "epsilon=0.0 must be positive"),
    "epsilon negative": ({"epsilon": -1}, "epsilon=-1 must be positive"),
    "epsilon too small to account for": ({"epsilon": 1e-12}, "out of range"),
    "epsilon too large to mean anything": ({"epsilon": 1e300}, "out of range"),
    "epsilon NaN": ({"epsilon": float("nan")}, "epsilon=nan must be positive"),
    "epsilon text": ({"epsilon": "1"}, "epsilon must be a number"),
    "epsilon boolean": ({"epsilon": True}, "epsilon must be a number"),
    "epsilon missing": ({"epsilon": None}, "epsilon must be a number"),
    "delta one": ({"delta": 1.0}, r"delta=1.0 must lie in \[0, 1\)"),
    "delta negative": ({"delta": -1e-6}, "delta=-1e-06 must lie"),
    "delta NaN": ({"delta": float("nan")}, "delta=nan must lie"),
    "delta text": ({"delta": "small"}, "delta must be a number"),
    "steps zero": ({"steps": 0}, "steps=0 must be a whole number of at least 1"),
    "steps negative": ({"steps": -3}, "steps=-3"),
    "steps a fraction": ({"steps": 2.5}, "steps=2.5"),
    "steps NaN": ({"steps": float("nan")}, "steps=nan"),
    "steps text": ({"steps": "many"}, "steps='many'"),
    "adjacency": ({"adjacency": "swap"}, "adjacency='swap' is not known"),
    "solver": ({"solver": "newton"}, "solver='newton' is not known"),
    "engine": ({"engine": "gpu"}, "engine='gpu' is not known"),
    "ledger of another type": ({"ledger": "study.db"}, "must be a Ledger"),
    "non-private solver": ({"solver": FrankWolfe()}, "Cannot use FrankWolfe"),
    "steps twice": ({"solver": PrivateFrankWolfe(steps=3), "steps": 4}, "given twice"),
    "private solver without noise": (
        {"solver": PrivateFrankWolfe(), "epsilon": float("inf")},
        'Cannot use solver="frank-wolfe" with epsilon=inf',
    ),
    "Gaussian noise with pure privacy": (
        {"solver": GaussianFrankWolfe(), "delta": 0.0},
        'Cannot use solver="gaussian-frank-wolfe" with delta=0. This is because',
    ),
}


@pytest.mark.parametrize("make", [lasso, logistic, erm])
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameter_is_refused_before_anything_happens(make, case, ledger, no_rows_read):
    changes, message = BAD_PARAMETERS[case]
    y = LABELS if make is logistic else Y
    with pytest.raises(InvalidArgument, match=message):
        make(**{"ledger": ledger} | changes).fit(X, y)
    assert ledger.charges == []


@pytest.mark.parametrize("make", [lasso, logistic])
@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), "big", None])
def test_bad_radius_is_refused(make, radius, ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match="radius"):
        make(radius=radius, ledger=ledger).fit(X, LABELS)
    assert ledger.charges == []


@pytest.mark.parametrize("make", [lasso, logistic, erm])
def test_seed_and_ledger_exclude_each_other(make, ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match="records only real spending"):
        make(ledger=ledger, random_state=0).fit(X, LABELS)
    assert ledger.charges == []


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[0], Y, "2D array"),
        (X[None], Y, "dim 3"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, np.ones((20, 2)), "1d array"),
        (X, None, "requires y"),
        (X[:0], Y[:0], "minimum of 1"),
        (X[:, :0], Y, "minimum of 1"),
        (X + 1j, Y, "Complex data not supported"),
        (X.astype(str), Y, "X is not numeric"),
        (X, np.full(20, "secret"), "y is not numeric"),
    ],
)
def test_wrong_shapes_and_types_are_refused(x, y, message, ledger, no_rows_read):
    with pytest.raises(ValueError, match=message) as caught:
        lasso(ledger=ledger).fit(x, y)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert ledger.charges == []


def test_bounds_on_y_are_required_for_regression(ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match="say nothing about y"):
        lasso(bounds=Bounds(x=1.0), ledger=ledger).fit(X, Y)
    assert ledger.charges == []


def test_a_bound_for_each_column_must_fit_the_columns(ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match="2 entries and the data 3 columns"):
        lasso(bounds=Bounds(x=[1.0, 1.0], y=1.0), ledger=ledger).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize(
    "given",
    [
        {"x": 0.0},
        {"x": -1.0},
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": 1e300},
        {"x": [1.0, 0.0]},
        {"x": [[1.0]]},
        {"x": "one"},
        {"x": [1.0, 2.0], "norm": "l2"},
        {"x": 1.0, "y": 0.0},
        {"x": 1.0, "y": float("nan")},
        {"x": 1.0, "norm": "l3"},
    ],
)
def test_impossible_bounds_are_refused(given):
    with pytest.raises(InvalidArgument):
        Bounds(**given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "squared"}, "loss must be a Loss"),
        ({"set": 1.0}, "set must be a constraint set"),
        ({"set": GroupL1Ball([0, 0], 1.0)}, "dimension 2"),
        ({"set": Polytope(np.eye(2))}, "2 coordinates and the data 3"),
        ({"set": L1Ball(1.0, n_features=7)}, "dimension 7"),
        ({"set": L2Ball(1.0), "solver": "frank-wolfe"}, 'Cannot use solver="frank-wolfe" with'),
        (
            {"set": L2Ball(1.0), "delta": 0.0, "solver": "gaussian-frank-wolfe"},
            "no pure guarantee",
        ),
    ],
)
def test_pieces_that_do_not_fit_are_refused(changes, message, ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match=message):
        erm(ledger=ledger, **changes).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (None, "needs classes"),
        ([0], "at least 2 classes"),
        ([], "at least 2 classes"),
        ("all", "must be a list of labels"),
    ],
)
def test_classes_must_be_public(classes, message, ledger, no_rows_read):
    with pytest.raises(InvalidArgument, match=message):
        logistic(classes=classes, ledger=ledger).fit(X, LABELS)
    assert ledger.charges == []


HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("make", [lasso, logistic, erm])
@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_hostile_values_change_neither_the_flow_nor_the_cost(make, norm, container):
    bounds = Bounds(x=1.0, y=1.0, norm=norm)
    clean = make(bounds=bounds, random_state=0).fit(container(X), LABELS)
    for i, value in enumerate(HOSTILE):
        x, y = X.copy(), LABELS.astype(float)
        x[i, :], y[i + 1] = value, value
        dirty = make(bounds=bounds, random_state=0).fit(container(x), y)
        assert dirty.n_iter_ == clean.n_iter_
        assert dirty.privacy_ == clean.privacy_
        assert np.all(np.isfinite(dirty.coef_))
        assert np.all(np.isfinite(dirty.intercept_))
        assert np.all(np.isfinite(dirty.predict(container(x))))


def test_every_row_hostile_is_still_a_model():
    x, y = np.full((20, 3), np.nan), np.full(20, np.inf)
    assert np.all(np.isfinite(lasso().fit(x, y).coef_))


def curator(event_count, mechanism):
    from riata.privacy.events import compose

    return Curator(LocalEngine(X, Y, BOUNDS), compose((mechanism.event, event_count)), Noise(0))


def test_a_release_beyond_the_plan_is_refused():
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, *X.shape)
    scores = VertexUtilities(problem, problem.set.start())
    mechanism = ExponentialMechanism(0.5)
    limited = curator(2, mechanism)
    limited.release(scores, mechanism)
    limited.release(scores, mechanism)
    with pytest.raises(BudgetExceeded, match="outside what was charged"):
        limited.release(scores, mechanism)


def test_a_release_outside_the_plan_is_refused():
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, *X.shape)
    limited = curator(2, ExponentialMechanism(0.5))
    with pytest.raises(BudgetExceeded):
        limited.release(Gradient(problem, problem.set.start()), GaussianMechanism(1.0))
    scores = VertexUtilities(problem, problem.set.start())
    with pytest.raises(BudgetExceeded):
        limited.release(scores, ExponentialMechanism(0.6))


def test_a_fit_that_the_ledger_refuses_reads_nothing(no_rows_read):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(0.5, 1e-6))
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        lasso(ledger=ledger).fit(X, Y)
    with pytest.raises(BudgetExceeded):
        lasso(ledger=ledger, epsilon=float("inf")).fit(X, Y)
    assert ledger.charges == []


def test_the_charge_is_durable_before_a_row_is_read(ledger, monkeypatch):
    seen = []
    real = LocalEngine.__init__

    def read(self, *args, **options):
        seen.append(len(ledger.charges))
        real(self, *args)

    monkeypatch.setattr(LocalEngine, "__init__", read)
    lasso(ledger=ledger).fit(X, Y)
    assert seen == [1]


def test_a_crash_after_the_charge_refunds_nothing(ledger, no_rows_read):
    with pytest.raises(AssertionError, match="a row was read"):
        lasso(ledger=ledger).fit(X, Y)
    assert len(ledger.charges) == 1
    assert ledger.spent.epsilon > 0


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "x"])
def test_losses_and_balls_refuse_impossible_parameters(value):
    for make in (
        Huber,
        L1Ball,
        L2Ball,
        Simplex,
        lambda v: LpBall(1.5, v),
        lambda v: GroupL1Ball(2, v),
    ):
        with pytest.raises(InvalidArgument):
            make(value)
