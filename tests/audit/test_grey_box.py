"""The exact privacy loss of every selection in a fit, from both neighbours' utilities.

A fit runs on one data set, and each query that it releases is also evaluated on a neighbour: the
same released trajectory seen from both. The exponential mechanism's probabilities then follow
without sampling. Its privacy loss, the log-ratio of the two probabilities of a candidate, must
have a range over the candidates of at most the epsilon that the plan claims for one step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from riata import Bounds, PrivateLasso, PrivateLogisticRegression
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.estimators import base
from riata.mechanisms import ExponentialMechanism, GaussianMechanism
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE

ROUNDING = 1e-9
N_ROWS, N_COLUMNS, STEPS = 12, 8, 6
PAIRS = 80


@dataclass
class Seen:
    """One release: what was asked, how it was answered, and the exact answers."""

    query: Any
    mechanism: Any
    ours: np.ndarray
    theirs: np.ndarray
    released: Any

    @property
    def is_selection(self):
        return hasattr(self.query, "mirrored")

    def losses(self, epsilon):
        """The log-ratio of each candidate's probabilities at a claimed epsilon."""
        scale = 2 * self.query.sensitivity("linf") / epsilon

        def log_law(utility):
            both = np.concatenate([utility, -utility]) if self.query.mirrored else utility
            return log_softmax(both / scale)

        return log_law(self.ours) - log_law(self.theirs)


def neighbouring(x, y, row):
    """The rows with `row` in place of row 0, or without row 0 if `row` is None."""
    rest = np.delete(x, 0, axis=0), np.delete(y, 0)
    if row is None:
        return rest
    return np.vstack([row[0], rest[0]]), np.append(row[1], rest[1])


class WithNeighbour(LocalEngine):
    """An engine that knows a neighbouring one."""

    row: Any = None

    def __init__(self, x, y, bounds):
        super().__init__(x, y, bounds)
        self.neighbour = LocalEngine(*neighbouring(x, y, self.row), bounds)


@pytest.fixture
def trace(monkeypatch):
    """Fits a model and returns every release; `row` replaces row 0, and None removes it."""
    planned = {}
    plan, release = base.PrivateLinearModel._planned, Curator.release
    seen = []

    def planned_once(self, losses, *shape):
        key = (id(self), len(losses))
        if key not in planned:
            planned[key] = plan(self, losses, *shape)
        return planned[key]

    def recorded(self, query, mechanism):
        engine, released = self._engine, release(self, query, mechanism)
        ours, theirs = engine.evaluate(query), engine.neighbour.evaluate(query)
        seen.append(Seen(query, mechanism, ours, theirs, released))
        return released

    monkeypatch.setattr(base.PrivateLinearModel, "_planned", planned_once)
    monkeypatch.setattr(base, "LocalEngine", WithNeighbour)
    monkeypatch.setattr(Curator, "release", recorded)

    def run(model, x, y, row, seed):
        monkeypatch.setattr(WithNeighbour, "row", row)
        seen.clear()
        model.set_params(random_state=seed).fit(x, y)
        return list(seen)

    return run


BOUNDS = Bounds(np.linspace(0.5, 2.0, N_COLUMNS), 1.5)
LENGTHS = Bounds(1.3, 1.5, norm="l2")


def lasso(bounds, adjacency, **options):
    return PrivateLasso(1.0, 1e-6, bounds=bounds, steps=STEPS, adjacency=adjacency, **options)


def logistic(bounds, adjacency, **options):
    options = {"classes": [0, 1], **options}
    return PrivateLogisticRegression(
        1.0, 1e-6, bounds=bounds, steps=STEPS, adjacency=adjacency, **options
    )


def three_classes(bounds, adjacency):
    return logistic(bounds, adjacency, classes=[0, 1, 2])


MODELS = {
    "lasso": lasso,
    "lasso without intercept": lambda *args: lasso(*args, fit_intercept=False),
    "logistic": logistic,
    "logistic with three classes": three_classes,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
every_bound = pytest.mark.parametrize("bounds", [BOUNDS, LENGTHS], ids=["entries", "length"])
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])


def claimed_epsilon(model):
    plan = model.plan(N_ROWS, N_COLUMNS)
    assert isinstance(plan["select"], ExponentialMechanism)
    return plan["select"].epsilon


def random_rows(rng, n, regression):
    """Rows inside the bounds, on their edge, far outside, and not numbers at all."""
    kinds = rng.integers(0, 4, n)
    usual = rng.uniform(-1.5, 1.5, (n, N_COLUMNS))
    edge = rng.choice([-9.0, 9.0], (n, N_COLUMNS))
    single = np.where(rng.random((n, N_COLUMNS)) < 1 / N_COLUMNS, edge, 0.0)
    rubbish = rng.choice([np.nan, np.inf, -np.inf, 1e300, 0.0, 0.3], (n, N_COLUMNS))
    x = np.choose(kinds[:, None], [usual, edge, single, rubbish])
    if regression:
        return x, rng.choice([-99.0, 99.0, np.nan, 0.2, -1.5, np.inf], n)
    return x, rng.integers(0, 4, n).astype(np.float64)


def check_releases(seen, model, epsilon):
    """Every release of a fit stays within what the plan claims for it; the largest range."""
    plan = model.plan(N_ROWS, N_COLUMNS)
    widest = 0.0
    for release in seen:
        if release.is_selection:
            assert release.mechanism == plan["select"]
            losses = release.losses(epsilon)
            width = losses.max() - losses.min()
            assert width <= epsilon * (1 + ROUNDING)
            # A range that contains 0, so the realised loss is at most epsilon too.
            assert losses.min() <= ROUNDING
            assert losses.max() >= -ROUNDING
            assert abs(losses[release.released]) <= epsilon * (1 + ROUNDING)
            widest = max(widest, width)
        else:
            assert isinstance(release.mechanism, GaussianMechanism)
            assert release.mechanism == plan["intercept"]
            change = np.linalg.norm(release.ours - release.theirs)
            assert change <= release.query.sensitivity("l2") * (1 + ROUNDING)
    return widest


@every_model
@every_bound
@every_adjacency
def test_no_selection_of_a_fit_loses_more_than_its_step_claims(trace, make, bounds, adjacency):
    model = make(bounds, adjacency)
    regression, epsilon = isinstance(model, PrivateLasso), claimed_epsilon(model)
    rng, widest = np.random.default_rng(31), 0.0
    for seed in range(PAIRS):
        x, y = random_rows(rng, N_ROWS + 1, regression)
        row = (x[-1], y[-1]) if adjacency == REPLACE_ONE else None
        seen = trace(model, x[:-1], y[:-1], row, seed)
        releases_a_step = 2 if model.fit_intercept else 1
        fits = len(np.atleast_2d(model.coef_))
        assert len(seen) == STEPS * releases_a_step * fits
        widest = max(widest, check_releases(seen, model, epsilon))
    # The pairs are not idle: random rows alone come near the claim.
    assert widest >= 0.5 * epsilon


def worst_rows(theta, bounds, positive):
    """Two rows for a released theta: the largest slope, and one free column that turns its sign.

    Bounds on entries leave the free column its whole length beside the largest margin.
    """
    side = -1.0 if theta.offset < 0 else 1.0
    limits = bounds.per_column(N_COLUMNS)
    x = side * np.sign(theta.dense()) * limits
    free = np.setdiff1d(np.arange(N_COLUMNS), theta.support)
    column = free[np.argmax(limits[free])]
    pair = np.stack([x, x])
    pair[:, column] = limits[column], -limits[column]
    y = -side * bounds.y if positive is None else float(positive if side < 0 else 1 - positive)
    return [(row, y) for row in pair], column


@pytest.mark.parametrize("make", [lasso, logistic])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_worst_pair_loses_what_the_step_claims(trace, make, adjacency):
    # With the largest bound on every column: a free one always reaches as far as any.
    bounds = Bounds(1.2, 1.5)
    model = make(bounds, adjacency)
    regression, epsilon = isinstance(model, PrivateLasso), claimed_epsilon(model)
    x, y = random_rows(np.random.default_rng(32), N_ROWS, regression)
    for seed in range(3):
        steps = [s for s in trace(model, x, y, None, seed) if s.is_selection]
        assert len(steps) == STEPS
        for at in steps:
            # Any data set can have released the theta before this step, so the rows may be chosen
            # for it.
            query, bounds = at.query, at.query.gradient.bounds
            (ours, theirs), column = worst_rows(
                query.gradient.theta, bounds, None if regression else 1
            )
            data = neighbouring(x, y, ours)
            other = neighbouring(*data, theirs if adjacency == REPLACE_ONE else None)
            answers = [LocalEngine(*rows, bounds).evaluate(query) for rows in (data, other)]
            losses = Seen(query, at.mechanism, *answers, None).losses(epsilon)
            assert losses.max() - losses.min() <= epsilon * (1 + ROUNDING)
            # It is the free column, up and down, that loses all of it.
            assert abs(losses[column] - losses[column + N_COLUMNS]) >= 0.95 * epsilon
