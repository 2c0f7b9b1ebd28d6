"""No release of a fit loses more than it claims, on any neighbours, in exact arithmetic.

`riata.audit.replay` sees a fit from both neighbours: see src/riata/audit/grey_box.py.
"""

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.audit import random_pairs, replay, replays, worst_pair
from riata.audit.pairs import extreme_rows
from riata.engines import LocalEngine
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.privacy.budget import ADD_REMOVE, CHANGED_CONTRIBUTIONS, REPLACE_LABEL, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Query, VertexUtilities
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, PolytopeSet, Simplex

pytestmark = pytest.mark.matrix(one_in=5)

N_ROWS, N_COLUMNS, STEPS = 12, 8, 6
PAIRS = 60

BOUNDS = {
    "entries": Bounds(np.linspace(0.5, 2.0, N_COLUMNS), 1.5),
    "length": Bounds(1.3, 1.5, norm="l2"),
}


def lasso(bounds, adjacency, delta=1e-6, **options):
    return PrivateLasso(1.0, delta, bounds=bounds, steps=STEPS, adjacency=adjacency, **options)


def logistic(bounds, adjacency, classes=(0, 1)):
    return PrivateLogisticRegression(
        1.0, 1e-6, bounds=bounds, steps=STEPS, adjacency=adjacency, classes=list(classes)
    )


MODELS = {
    "lasso": lasso,
    "lasso, pure": lambda *args: lasso(*args, delta=0.0),
    "lasso, frank-wolfe": lambda *args: lasso(*args, solver="frank-wolfe"),
    "lasso, frank-wolfe, pure": lambda *args: lasso(*args, delta=0.0, solver="frank-wolfe"),
    "lasso without intercept": lambda *args: lasso(*args, fit_intercept=False),
    "lasso, gaussian": lambda *args: lasso(*args, solver="gaussian-frank-wolfe"),
    "logistic": logistic,
    "logistic with three classes": lambda *args: logistic(*args, classes=("a", "b", "c")),
    "hinge over a simplex": lambda bounds, adjacency: PrivateErm(
        SmoothedHinge(0.5), Simplex(1.2), 1.0, 1e-6,
        bounds=bounds, steps=STEPS, adjacency=adjacency,
    ),
}  # fmt: skip
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
every_bound = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])


@every_model
@every_bound
@every_adjacency
def test_no_release_of_a_fit_exceeds_its_claim(make, bounds, adjacency):
    model = make(bounds, adjacency)
    pairs = random_pairs(model, PAIRS, N_ROWS, N_COLUMNS, label="suite")
    found = list(replays(model, pairs, seed=1))
    assert len(found) == PAIRS
    assert all(each.sound for each in found)
    # The pairs are not idle: random rows alone come near the claim.
    assert max(each.worst for each in found) >= 0.3


def test_a_replay_sees_every_release_and_charges_nothing():
    model = lasso(BOUNDS["entries"], REPLACE_ONE, solver="frank-wolfe")
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    found = replay(model, pair.data, pair.neighbour, seed=2)
    assert [each.mechanism for each in found.releases] == [
        "ExponentialMechanism",
        "GaussianMechanism",
    ] * STEPS
    assert not hasattr(model, "coef_")
    assert 0 < found.realised.epsilon <= found.claimed.epsilon
    assert str(found).startswith("no release exceeds its claim")


def test_equal_data_sets_realise_nothing():
    model = lasso(BOUNDS["entries"], REPLACE_ONE)
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    found = replay(model, pair.data, pair.data, seed=2)
    assert found.worst == 0.0
    assert found.realised.epsilon == 0.0


def test_a_fit_without_noise_is_accused():
    model = PrivateLasso(float("inf"), bounds=BOUNDS["entries"], steps=2)
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    assert not replay(model, pair.data, pair.neighbour).sound


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("name", ["lasso", "lasso, pure", "lasso, gaussian", "logistic"])
def test_half_the_sensitivity_is_accused(monkeypatch, name, adjacency):
    model = MODELS[name](BOUNDS["entries"], adjacency)
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    honest = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: honest(self, norm) / 2)
    assert not replay(model, pair.data, pair.neighbour, seed=3).sound


# Worst pairs.

LOSSES = [Squared(), Huber(0.5), Logistic(), SmoothedHinge(0.7)]
SETS = [
    L1Ball(1.7),
    Simplex(0.8),
    GroupL1Ball(2, 1.2),
    L2Ball(1.1),
    LpBall(1.5, 0.9),
    Polytope(np.vstack([np.eye(N_COLUMNS), -np.eye(N_COLUMNS)])),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("constraint", SETS, ids=str)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_worst_pair_reaches_the_claim(loss, constraint, adjacency):
    solver = "frank-wolfe" if isinstance(constraint, PolytopeSet) else "gaussian-frank-wolfe"
    model = PrivateErm(
        loss, constraint, 1.0, 1e-6, bounds=Bounds(1.2, 1.5), steps=1, adjacency=adjacency,
        fit_intercept=False, solver=solver,
    )  # fmt: skip
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    found = replay(model, pair.data, pair.neighbour, seed=4)
    assert found.sound
    # The simplex's selection loses all of it only if two columns move apart at once.
    assert found.worst == pytest.approx(pair.ratio)
    assert found.worst >= 0.95


@pytest.mark.parametrize("make", [lasso, logistic])
@every_bound
@every_adjacency
def test_a_worst_pair_of_an_estimator_reaches_the_claim(make, bounds, adjacency):
    model = make(bounds, adjacency)
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    found = replay(model, pair.data, pair.neighbour, seed=5)
    assert found.sound
    assert found.worst >= 0.95


@pytest.mark.parametrize("loss", [Squared(), OneAgainstRest(Logistic(), 1)], ids=repr)
def test_some_row_reaches_the_claim_at_every_iterate(loss):
    # Any data set can have released the theta before a step, so the rows may be chosen for it.
    problem = Problem(loss, L1Ball(1.0), Bounds(1.2, 1.5), N_ROWS, N_COLUMNS)
    theta = problem.set.start()
    for step in range(4):
        theta = theta.toward(problem.set.vertex(step), 0.5).with_offset(0.3)
        scores = VertexUtilities(problem, theta)
        x, y = extreme_rows(problem, theta)
        summands = [
            scores.from_total(LocalEngine(x[i : i + 1], y[i : i + 1], problem.bounds).total(scores))
            for i in range(len(x))
        ]
        apart = max(np.abs(a - b).max() for a in summands for b in summands)
        assert 0.95 <= apart / scores.sensitivity("linf") <= 1.0


def test_the_pairs_of_an_audit_are_neighbours():
    for adjacency in CHANGED_CONTRIBUTIONS:
        model = lasso(BOUNDS["entries"], adjacency).set_params(solver="frank-wolfe")
        pairs = list(random_pairs(model, 5, N_ROWS, N_COLUMNS))
        worst = worst_pair(model, N_ROWS, N_COLUMNS)
        for (x, y), (their_x, their_y) in [*pairs, (worst.data, worst.neighbour)]:
            assert len(x) == len(y) == N_ROWS
            assert len(their_x) == len(their_y) == N_ROWS - (adjacency == ADD_REMOVE)
            ours = slice(1, None)
            theirs = slice(None) if adjacency == ADD_REMOVE else ours
            np.testing.assert_array_equal(x[ours], their_x[theirs])
            np.testing.assert_array_equal(y[ours], their_y[theirs])
            if adjacency == REPLACE_LABEL:
                np.testing.assert_array_equal(x[0], their_x[0])
